"""slurmdbd of one Accounting."""
