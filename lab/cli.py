"""A real Kubernetes on this one machine."""

import subprocess
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab import binaries, checks, cluster, daemons, loading, node, topology
from lab.errors import LabError
from lab.progress import say

app = typer.Typer(no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)
_out = Console(highlight=False)


@app.command()
def up(
    nodes: Annotated[int, typer.Option(min=1, max=9, help="Machines; the first has the control plane.")] = 3,
) -> None:
    """Start the lab, or what of it does not run."""
    path = cluster.up(nodes)
    say(f"ready: export KUBECONFIG={path} PATH={cluster.PROGRAMS}:$PATH")


@app.command()
def down(
    verify: Annotated[bool, typer.Option(help="Only list what of the lab is on this machine.")] = False,
) -> None:
    """End the lab and remove everything it made on this machine, except the cache."""
    if not verify:
        cluster.down()
        say("nothing of the lab is left")
        return
    left = checks.leftovers()
    _out.print("\n".join(left) or "nothing of the lab is left", markup=False)
    raise typer.Exit(1 if left else 0)


@app.command()
def status() -> None:
    """Show the nodes and the daemons; exit code 1 when the lab or one of its daemons does not run."""
    names = daemons.known()
    if not names:
        _out.print("the lab is down")
        raise typer.Exit(1)
    table = Table("daemon", "process", "log", box=None)
    running = {name: daemons.process(name) for name in names}
    for name, process in running.items():
        table.add_row(name, str(process.pid) if process else "[red]ended[/red]", str(daemons.log(name)))
    _out.print(table)
    _out.print(cluster.kubectl("get", "nodes", "-o", "wide"), markup=False)
    _out.print(f"KUBECONFIG={cluster.KUBECONFIG}")
    if not all(running.values()):
        raise typer.Exit(1)


@app.command()
def kubeconfig() -> None:
    """Print the path of the administrator's kubeconfig."""
    if not cluster.KUBECONFIG.exists():
        raise LabError("the lab is down: `python -m lab up` starts it")
    print(cluster.KUBECONFIG)


@app.command()
def logs(
    name: Annotated[str | None, typer.Argument(help="A daemon as `lab status` names it.")] = None,
    lines: Annotated[int, typer.Option("--lines", "-n")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f")] = False,
) -> None:
    """Show the end of a daemon's log; without a name, list the daemons."""
    if name is None:
        print("\n".join(daemons.known()))
    elif name not in daemons.known():
        raise LabError(f"no daemon is called {name}; there are: {', '.join(daemons.known()) or 'none'}")
    else:
        subprocess.run(["tail", f"-n{lines}", *["-f"] * follow, str(daemons.log(name))], check=True)


@app.command()
def load(images: list[str]) -> None:
    """Import images into every node: OCI archives by path, or images of buildah's store by name."""
    nodes = topology.recorded_nodes()
    if not nodes:
        raise LabError("the lab is down: `python -m lab up` starts it")
    for image in images:
        loading.load_named(image, nodes)


@app.command(context_settings={"ignore_unknown_options": True})
def ssh(name: str, command: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Run a command on a node, with its network, mounts and host name; a shell when none is given."""
    found = {one.name: one for one in topology.recorded_nodes()}
    if name not in found:
        raise LabError(f"no node is called {name}; there are: {', '.join(found) or 'none'}")
    prefix = node.namespaces.enter(found[name])
    raise typer.Exit(subprocess.run([*prefix, *(command or ["sh"])], check=False).returncode)


@app.command()
def build(
    components: Annotated[list[str] | None, typer.Argument(help="All, when none is named.")] = None,
) -> None:
    """Build Kubernetes and its companions into the user's cache."""
    for name in components or list(binaries.COMPONENTS):
        if name not in binaries.COMPONENTS:
            raise LabError(f"no component is called {name}; there are: {', '.join(binaries.COMPONENTS)}")
        binaries.ensure(name)
        say(f"{name}: in {binaries.COMPONENTS[name].folder}")


def main() -> None:
    """Run the command line; an error that a person can act on is a line, not a trace."""
    try:
        app()
    except LabError as error:
        say(f"[red]error:[/red] {error}")
        raise SystemExit(1) from None
