"""What runs at an agent host's moments: one process an event, which answers with pointers or not at all.

`run` is the way in, `places` chooses the base, `query` makes a question of the event, `handlers` asks recall,
`budget` decides what of it is said, `sessions` remembers what was said, `injectlog` writes every decision down.
Hosts and recall stand above; nothing below but the command line. Whatever fails here fails in silence.
"""
