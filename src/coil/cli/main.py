"""The `coil` command."""

from importlib import metadata
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from coil.api import crd
from coil.slurm.jwks import KeyFormatError, key_set

app = typer.Typer(
    name="coil",
    help="Slurm clusters on Kubernetes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(metadata.version("coil"))


@app.command()
def crds(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write one file for each kind to.")
    ] = None,
) -> None:
    """Print the CustomResourceDefinitions, or write them to a folder."""
    definitions = crd.all_definitions()
    if output is None:
        typer.echo(crd.to_yaml(definitions.values()), nl=False)
        return
    output.mkdir(parents=True, exist_ok=True)
    for name, definition in definitions.items():
        (output / name).write_text(crd.to_yaml([definition]))


@app.command()
def jwks(
    files: Annotated[
        list[Path],
        typer.Argument(help="RSA keys in PEM form, private or public.", exists=True, dir_okay=False),
    ],
) -> None:
    """Print the JWKS, with nothing secret in it, by which slurmctld checks tokens of any of these keys."""
    try:
        document = key_set(path.read_bytes() for path in files)
    except KeyFormatError as error:
        typer.echo(f"coil: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
