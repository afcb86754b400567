"""Kubernetes pods placed by Slurm."""
