"""What is wrong with a base's files: `lint` applies the rules, `screening` decides what may enter at all.

Everything here is a question about what `store` reads; nothing is written. `pipeline` asks before it lets a card in,
`cli` shows what was found.
"""
