"""What every room may use: logging, metrics, asyncio primitives. Knows neither Kubernetes nor Slurm."""
