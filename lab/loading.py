"""Bring images to the nodes: each unpacked once into a store, from which every node begins.

Unpacking a gigabyte of archives on each node would take most of a minute. So a containerd of its own unpacks
them once into the cache, where the next start finds them, and each node gets hard links: content and unpacked
layers are never written again. Only containerd's databases are copied. A node that runs already imports what
it lacks by itself.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import archives, containerd, daemons, files, paths
from lab.containerd import Containerd
from lab.processes import run
from lab.progress import step
from lab.topology import Node

_STORE = paths.cache() / "containerd"
_RECORD = _STORE / "images.json"
_NAME = "image-store"
_DATABASES = ("io.containerd.metadata.v1.bolt/meta.db", "io.containerd.snapshotter.v1.overlayfs/metadata.db")


def fill_store(paths_of_archives: Sequence[Path]) -> None:
    """Unpack into the store what it lacks; an image replaces one of the same name."""
    known: dict[str, str] = json.loads(_RECORD.read_text()) if _RECORD.exists() else {}
    wanted = {path: archives.reference(path) for path in paths_of_archives}
    new = [path for path, (name, identity) in wanted.items() if known.get(name) != identity]
    if not new:
        return
    with step(f"image store: {len(new)} images unpacked"):
        store = _store()
        store.ensure()
        for path in new:
            store.import_archive(path)
        daemons.stop(_NAME)
        known |= dict(wanted[path] for path in new)
        files.write(_RECORD, json.dumps(known, indent=2))


def begun(node: Node) -> bool:
    """Tell whether a node has images of its own already."""
    return _root(node).exists()


def begin(node: Node) -> None:
    """Give a new node what the store has; its containerd must not run yet."""
    root = _root(node)
    if root.exists():
        return
    scratch = root.with_name("containerd.new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    how = "--link" if _same_disk(scratch) else "--reflink=auto"
    run("cp", "--archive", "--force", how, f"{_STORE}/.", str(scratch))
    for name in _DATABASES:
        run("cp", "--remove-destination", str(_STORE / name), str(scratch / name))
    scratch.rename(root)


def _same_disk(folder: Path) -> bool:
    """Try: one file system mounted twice has one device number but takes no links across."""
    try:
        (folder / _RECORD.name).hardlink_to(_RECORD)
    except OSError:
        return False
    return True


def load(paths_of_archives: Sequence[Path], nodes: Sequence[Node]) -> None:
    """Import archives into every running node that does not have them yet.

    Raises:
        LabError: an archive is none, or containerd refuses it.
    """
    wanted = {archives.reference(path): path for path in paths_of_archives}
    with ThreadPoolExecutor(max_workers=len(nodes) or 1) as pool:
        list(pool.map(_import_missing, [wanted] * len(nodes), nodes))


def load_from_buildah(image: str, nodes: Sequence[Node]) -> None:
    """Import an image of buildah's default store.

    Raises:
        LabError: buildah has no image of that name.
    """
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "image.tar"
        run("buildah", "push", "--quiet", image, f"oci-archive:{archive}:{image}")
        load([archive], nodes)


def _root(node: Node) -> Path:
    return node.data / "lib" / "containerd"


def _import_missing(wanted: dict[tuple[str, str], Path], node: Node) -> None:
    runtime = containerd.of_node(node)
    present = runtime.images()
    for reference, path in wanted.items():
        if reference not in present:
            runtime.import_archive(path)


def _store() -> Containerd:
    """Return the containerd of the store: no Kubernetes plugin, mounts that nobody else sees."""
    state = paths.STATE / _NAME
    state.mkdir(parents=True, exist_ok=True)
    _STORE.mkdir(parents=True, exist_ok=True)
    config, socket = state / "config.toml", state / "socket"
    config.write_text(
        f"""version = 2
root = "{_STORE}"
state = "{state}/run"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
address = "{socket}"
"""
    )
    return Containerd(_NAME, _NAME, ["unshare", "--mount"], config, str(socket))
