"""`python -m lab`."""

from lab.cli import app

app()
