"""The base's files and its git repository; nothing outside this folder touches either.

`files` holds the only writing primitives, `repo` the only git processes, `commit` the all-or-nothing commit that
every command which changes tracked files goes through, `markdown` the one frontmatter reader. Values come from
`model`; `check`, `index` and `pipeline` stand on this.
"""
