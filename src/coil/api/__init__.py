"""The six kinds of slinky.slurm.net/v1beta1: wire types, defaults, well-known keys, CRDs."""
