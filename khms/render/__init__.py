"""What is made for reading: the generated files of a base.

Values and files come in from `model` and `store`; nothing here decides anything. The pipeline stands below and takes
`views.for_base` as a function.
"""
