"""One Slurm REST client per Controller: address, token, poller."""
