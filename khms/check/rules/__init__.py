"""The lint rules, one module a family. A rule is a function of a `Subject` and the `Context` that yields `Fault`s;
`khms.check.lint.RULES` lists them all."""
