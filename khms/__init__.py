"""khms: long-term memory for coding agents that people review like code.

The way through the package, one folder after the other:

    store (journal) -> pipeline (propose, verify, carry) -> store (inbox) -> pipeline (approve)
    -> index -> recall -> hooks -> measure

Nothing is imported here: a hook process pays for every import.
"""

__version__ = "0.1.0"
