"""khms as a server of the Model Context Protocol: an agent asks and proposes through tools, and never approves.

`tools` is the table of what can be called, `resources` and `prompts` what can be read, `serving` the process itself
over standard input and output, `visit` a client that looks whether a configured server answers. The tools call the
functions that the commands call; the layer below, the command line, starts the server. The protocol's library is an
extra of the package and is imported by `serving` and `visit` only.
"""
