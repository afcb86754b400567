"""Pure: a kind and its inputs in, Kubernetes objects out."""
