"""The search index: derived from the files of the base, and never more than a copy that can be thrown away.

    sources, changes -> reading, documents -> text, fields -> writer        (sync runs this way, manifest remembers it)
    freshness, current -> lexical                                           (recall asks this way)

Stands on `store` for the files and on git through it; `recall` asks it, commands and the server refresh it. What the
hook's path imports (freshness, current, lexical, fields, text, manifest) loads nothing heavy.
"""
