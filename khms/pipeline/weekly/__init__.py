"""`khms weekly`: what a base's cards say together, proposed into one unit of the inbox.

`ground` holds what the steps look at, `steps` lists them, one module each: supersessions, contradictions, principles,
condensations. `made` turns their offers into candidates and changes and checks them, `past` knows what was offered
before, `report` and `unit` write, `run` is the way from the lock to the delivery. No step writes, nothing approves.
"""
