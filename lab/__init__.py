"""A real Kubernetes on this one machine, for trying and testing coil."""
