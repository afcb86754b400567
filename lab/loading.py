"""Put images into the nodes' containerd, from archives or from buildah's store."""

import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import node as nodes_room
from lab.errors import LabError
from lab.processes import run
from lab.progress import step
from lab.topology import Node


def load(archives: Iterable[Path], nodes: Sequence[Node]) -> None:
    """Import archives into every node that does not have them yet.

    Raises:
        LabError: an archive is none, or containerd refuses it.
    """
    paths = list(archives)
    with ThreadPoolExecutor(max_workers=len(nodes) or 1) as pool:
        list(pool.map(_load, [paths] * len(nodes), nodes))


def load_named(image: str, nodes: Sequence[Node]) -> None:
    """Import an archive by its path, or an image of buildah's store by its name."""
    path = Path(image)
    with step(f"{image}: loaded into {len(nodes)} nodes"), tempfile.TemporaryDirectory() as scratch:
        if not path.is_file():
            path = Path(scratch) / "image.tar"
            run("buildah", "push", "--quiet", image, f"oci-archive:{path}:{image}")
        load([path], nodes)


def _load(archives: Sequence[Path], node: Node) -> None:
    record = node.state / "images.json"
    loaded: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    for archive in archives:
        stamp = f"{archive.stat().st_mtime_ns}-{archive.stat().st_size}"
        if loaded.get(str(archive)) == stamp:
            continue
        _import(archive, node)
        loaded[str(archive)] = stamp
        record.write_text(json.dumps(loaded))


def _import(archive: Path, node: Node) -> None:
    # By standard input: the node may have another /tmp or /run than the host.
    with archive.open("rb") as stream:
        done = subprocess.run(
            nodes_room.ctr(node, "images", "import", "-"), stdin=stream, capture_output=True, check=False
        )
    if done.returncode:
        raise LabError(f"{node.name} cannot import {archive}: {done.stderr.decode().strip()}")
