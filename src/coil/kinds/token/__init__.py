"""Slurm tokens kept fresh in Secrets."""
