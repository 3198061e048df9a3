"""From a journal line to an approved card: one half proposes, the other decides.

Proposing is `nightly`, which lists its stages: `sources` collects the open MARKs, `packet` is what a proposer is shown
about one of them out of what is `known`, `propose` asks it (`rules` needs no model), `carry` makes each decision
durable, `draft` turns decisions into candidates, `checks` holds what is verified (`quotes`, `specifics`, `relations`,
`duplicates`, and the screening of `check`), `postprocess` sorts out what is published, deferred and dropped, `publish`
commits the unit with its `report`. `night` is the run as a value, `lastrun` what this machine remembers of it.

Deciding is `approve`, `withhold` and `status`; nothing else leads to a write in `memory/know`.

Stands on `store` (files and git), `check` (what may enter) and `index` (how a text becomes terms). `cli` calls it.
"""
