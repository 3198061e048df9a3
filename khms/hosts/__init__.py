"""One file per agent host: its payloads, the form of its answers, where its settings stand.

Above it are the store and recall; the hook handlers and the commands use it through `registry`. What a hook
process needs of a host is kept free of heavy imports; `settings`, `backup` and `jsonc` serve commands only.

`headless` asks a host's program, or an endpoint, one question; `transcripts` reads what hosts keep of their sessions.

Git hosts are here too, one file each (`github`, `gitlab`), by their id in `forges`; `forge` is what they share.
"""
