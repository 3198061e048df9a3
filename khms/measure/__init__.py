"""How good and how fast it is, measured: whole processes beside a bare interpreter, in one run, as medians.

Stands on everything below the command line; nothing depends on it.
"""
