"""REST client, shared cluster view, hostlists, config text: knows Slurm, not Kubernetes."""
