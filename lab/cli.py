"""A real Kubernetes on this one machine."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lab import (
    binaries,
    checks,
    cluster,
    daemons,
    images,
    install,
    namespaces,
    packages,
    topology,
)
from lab.demo import Demo, DemoError
from lab.errors import LabError
from lab.images import BuildError
from lab.install import InstallError
from lab.progress import say, step
from lab.rootfs import RootfsError

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)
_out = Console(highlight=False, soft_wrap=True)


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
    print(cluster.kubectl("get", "nodes", "-o", "wide"))
    print(f"KUBECONFIG={cluster.KUBECONFIG}")
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
def load(names: list[str]) -> None:
    """Import images into every node: archives by path, the project's or buildah's images by name."""
    for name in names:
        cluster.load(name)


@app.command(context_settings={"ignore_unknown_options": True})
def ssh(name: str, command: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Run a command on a node, with its network, mounts and host name; a shell when none is given."""
    found = {one.name: one for one in topology.recorded_nodes()}
    if name not in found:
        raise LabError(f"no node is called {name}; there are: {', '.join(found) or 'none'}")
    prefix = namespaces.enter(found[name])
    raise typer.Exit(subprocess.run([*prefix, *(command or ["sh"])], check=False).returncode)


@app.command()
def build(
    components: Annotated[
        list[str] | None, typer.Argument(help="All but kwok and keda, when none is named.")
    ] = None,
) -> None:
    """Build Kubernetes and its companions into the user's cache."""
    for name in components or binaries.DEFAULT:
        if name not in binaries.COMPONENTS:
            raise LabError(f"no component is called {name}; there are: {', '.join(binaries.COMPONENTS)}")
        binaries.ensure(name)
        say(f"{name}: in {binaries.COMPONENTS[name].folder}")


@app.command(name="images")
def build_images(
    names: Annotated[list[str] | None, typer.Argument(help="All, when none is named.")] = None,
) -> None:
    """Build the project's container images into the user's cache; `up` loads them."""
    packages.ensure()
    raise typer.Exit(images.main(names or []))


@app.command()
def demo(
    kubeconfig: Annotated[Path | None, typer.Option(help="A cluster of yours instead of the lab.")] = None,
    values: Annotated[list[Path] | None, typer.Option(help="More values for the slurm chart.")] = None,
    operator_values: Annotated[
        list[Path] | None, typer.Option(help="More values for the slurm-operator chart.")
    ] = None,
) -> None:
    """Install coil and run Slurm jobs: in the lab, started where it is not, or in a cluster of yours."""
    target = _own_lab() if kubeconfig is None else install.elsewhere(kubeconfig)
    with step("charts: installed"):
        if kubeconfig is None:
            target.database()  # first, for it takes the longest
        target.install(install.CRDS)
        target.install(install.OPERATOR, operator_values or [])
        if kubeconfig is None:
            target.follow_image(images.content_key(images.IMAGES["operator"]))
        accounting = [install.ACCOUNTING] if kubeconfig is None else []
        target.install(install.SLURM, [*accounting, *(values or [])])
    Demo(target, _out, accounting=kubeconfig is None).run()
    say("done")


def _own_lab() -> install.Cluster:
    packages.ensure()
    with ThreadPoolExecutor() as pool:  # one waits for the processor, the other for the network
        built = [pool.submit(cluster.build), pool.submit(images.build, report=lambda line: say(escape(line)))]
        for future in built:
            future.result()
    return install.in_lab(cluster.up())


def main() -> None:
    """Run the command line; an error that a person can act on is a line, not a trace."""
    try:
        app()
    except (LabError, BuildError, RootfsError, InstallError, DemoError) as error:
        say(f"[red]error:[/red] {escape(str(error))}")
        raise SystemExit(1) from None
