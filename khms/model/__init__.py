"""Pure values and the rules over them; no file is opened here.

Everything that came from a file knows its path and line. `store` builds these values, every other folder reads them.
"""
