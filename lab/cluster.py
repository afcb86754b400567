"""Start and end the whole lab. Both converge: what is done is left, what is half done is finished."""

import fcntl
import json
import shutil
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lab import (
    addons,
    baseimages,
    binaries,
    cgroups,
    checks,
    containerd,
    controlplane,
    images,
    loading,
    namespaces,
    network,
    node,
    packages,
    paths,
    topology,
    tunables,
)
from lab.certificates import Subject
from lab.controlplane import ADMINISTRATORS, ControlPlane
from lab.daemons import Daemon
from lab.errors import LabError
from lab.processes import run, wait_for
from lab.progress import say, step
from lab.topology import Node, Record

KUBECONFIG = paths.STATE / "admin.conf"
PROGRAMS = paths.STATE / "bin"
_START_SECONDS = 90.0


def up(count: int = topology.DEFAULT_NODES) -> Path:
    """Start the lab, or what of it does not run, and return its kubeconfig when everything is ready.

    Raises:
        LabError: something cannot start; `up` may be repeated when the cause is gone.
    """
    packages.ensure()
    base = build()
    with _only_one():
        _finish_what_ended(count)
        nodes = topology.nodes(count)
        Record(count, topology.boot_id()).write()
        plane = topology.control_plane(nodes[0])
        with step("network, namespaces and cgroups"):
            _prepare_machine(nodes)
        with ThreadPoolExecutor() as pool:
            _together(
                pool,
                lambda: _start_control_plane(nodes[0], plane),
                lambda: _start_runtimes(nodes, [*base, *built_images().values()]),
            )
            _start_cluster(nodes, plane)
    return KUBECONFIG


def build() -> list[Path]:
    """Build what a bare cluster needs where the cache lacks it, and return the archives of its images."""
    binaries.ensure(*binaries.DEFAULT)
    return baseimages.ensure()


def down() -> None:
    """End every process of the lab and remove all it made, in whatever state it is.

    Raises:
        LabError: something of it remains.
    """
    with _only_one():
        _down()


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    """Run kubectl as the lab's administrator and return what it printed."""
    return run(str(binaries.binary("kubectl")), f"--kubeconfig={KUBECONFIG}", *arguments, stdin=stdin)


def built_images() -> dict[str, Path]:
    """Return the archives of the project's own images as they were built last, by reference."""
    links = {
        image.reference: paths.cache() / "images" / f"{name}.tar" for name, image in images.IMAGES.items()
    }
    return {reference: link.resolve() for reference, link in links.items() if link.exists()}


def load(image: str) -> None:
    """Load one image into every node: a file, an image of the project, or one of buildah's own store."""
    nodes = topology.recorded_nodes()
    if not nodes:
        raise LabError("the lab is down: `python -m lab up` starts it")
    with step(f"{image}: loaded into {len(nodes)} nodes"):
        if (archive := built_images().get(image, Path(image))).is_file():
            loading.load([archive], nodes)
        else:
            loading.load_from_buildah(image, nodes)


def _down() -> None:
    (paths.STATE / "lab.json").unlink(missing_ok=True)
    with step("processes: ended"):
        cgroups.kill_all()
    with step("namespaces, network, cgroups and files: removed"):
        network.remove()
        cgroups.remove()
        tunables.restore()
        # A hundred thousand files: `rm` is several times faster than Python.
        run("rm", "--recursive", "--force", "--one-file-system", str(paths.DATA), str(paths.STATE))
    if left := checks.leftovers():
        raise LabError("the lab is down, but this remains:\n" + "\n".join(left))


def _finish_what_ended(count: int) -> None:
    """Take down what a reboot or an interrupted `down` left; refuse another number of nodes."""
    record = Record.read()
    if record is None or record.boot != topology.boot_id():
        if paths.STATE.exists():
            say("removing what an earlier lab left")
            _down()
    elif record.nodes != count:
        raise LabError(f"the lab runs with {record.nodes} nodes: `python -m lab down` before another number")


@contextmanager
def _only_one() -> Generator[None]:
    path = paths.cache() / "lab.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another `lab up` or `lab down`")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _together(pool: ThreadPoolExecutor, *tasks: Callable[[], None]) -> None:
    """Run tasks side by side; the first failure is raised when all have ended."""
    for future in [pool.submit(task) for task in tasks]:
        future.result()


def _prepare_machine(nodes: Sequence[Node]) -> None:
    tunables.save()
    cgroups.create([one.name for one in nodes])
    network.create_bridge()
    for one in nodes:
        node.create(one, nodes)
    network.batch(*network.host_routes(nodes))


def _start_control_plane(control: Node, plane: ControlPlane) -> None:
    with step("control plane: ready"):
        controlplane.prepare(plane)
        daemons = [
            Daemon(name, argv, group="control-plane", prefix=namespaces.enter_network(control))
            for name, argv in (
                ("etcd", controlplane.etcd(plane)),
                ("kube-apiserver", controlplane.apiserver(plane)),
                ("kube-controller-manager", controlplane.controller_manager(plane)),
                ("kube-scheduler", controlplane.scheduler(plane)),
            )
        ]
        for daemon in daemons[:2]:
            daemon.ensure()
        wait_for("kube-apiserver", lambda: controlplane.ready(plane), _START_SECONDS, daemons[1].ended)
        for daemon in daemons[2:]:
            daemon.ensure()


def _start_runtimes(nodes: Sequence[Node], archives: Sequence[Path]) -> None:
    with step(f"containerd and {len(archives)} images: ready on each node"):
        if not all(loading.begun(one) for one in nodes):
            loading.fill_store(archives)
        for one in nodes:
            loading.begin(one)
            containerd.write_node_config(one)
        for one in nodes:
            containerd.of_node(one).ensure()
        loading.load(archives, nodes)


def _start_cluster(nodes: Sequence[Node], plane: ControlPlane) -> None:
    with step("nodes and add-ons: ready"):
        shutil.copy(plane.admin_conf, KUBECONFIG)
        _link_programs()
        for one in nodes:
            node.start_agents(one, plane)
        kubectl("apply", "-f", "-", stdin=addons.manifests())
        _start_provisioner(plane)
        wait_for("nodes registered", lambda: len(_nodes()) == len(nodes), _START_SECONDS)
        kubectl("label", "--overwrite", "node", nodes[0].name, f"{node.CONTROL_PLANE_LABEL}=")
        timeout = f"--timeout={_START_SECONDS:.0f}s"
        kubectl("wait", "--for=condition=Ready", "nodes", "--all", timeout)
        kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", timeout)


def _start_provisioner(plane: ControlPlane) -> None:
    path = plane.directory / "volumes.conf"
    if not path.exists():
        plane.write_kubeconfig(path, Subject("coil-lab-volumes", [ADMINISTRATORS]))
    Daemon("volumes", [sys.executable, "-m", "lab.storage", str(path)], group="control-plane").ensure()


def _link_programs() -> None:
    """Put kubectl and helm into one folder for a person's PATH."""
    PROGRAMS.mkdir(exist_ok=True)
    for name in ("kubectl", "helm"):
        link = PROGRAMS / name
        link.unlink(missing_ok=True)
        link.symlink_to(binaries.binary(name))


def _nodes() -> list[str]:
    return [item["metadata"]["name"] for item in json.loads(kubectl("get", "nodes", "-o", "json"))["items"]]
