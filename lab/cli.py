"""The command line of the lab."""

import typer

from lab import binaries

app = typer.Typer(no_args_is_help=True, help=__doc__)


@app.command()
def build(components: list[str] | None = None) -> None:
    """Build Kubernetes and its companions into the cache."""
    binaries.ensure(*(components or binaries.COMPONENTS))
