"""Knows Slurm, not Kubernetes: REST client, shared view of a cluster, tokens."""
