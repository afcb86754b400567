"""slurmrestd of one RestApi."""
