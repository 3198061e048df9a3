"""Questions to the base: query -> the index -> rank -> links, snippet -> answer.

Stands on `index` alone for finding and on `store` for the line that is shown. Hooks, commands and the MCP server ask
through `search.recall`.
"""
