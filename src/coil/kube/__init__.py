"""The controller runtime: knows Kubernetes, not Slurm."""
