"""How the operator's reasons on Slurm nodes are told from those of people (spec: nodeset 1)."""

REASON_PREFIX = "slurm-operator: "
"""Starts every reason that the operator gives a node."""
