"""The warm server: one process a base, which holds the index and the model and answers hooks and `khms recall`.

`address` says where its socket stands, `wire` what is spoken there; both, with `asking` (the client's end) and `client`
(what a host's hook runs), load nothing that a bare interpreter does not hold. `service` is the process itself, `look`
keeps its index up to date, `launch` starts it. It calls the functions that a process without a server calls; commands
of the command line are given to it by the layer below.
"""
