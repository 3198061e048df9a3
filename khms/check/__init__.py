"""What is wrong with a base's files: `lint` applies the rules, `screening` decides what may enter at all.

Everything here is a question about what `store` reads; no file of a base is changed. `pipeline` asks before it lets a
card in, `cli` shows what was found.
"""
