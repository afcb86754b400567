"""Container images as files: written as OCI archives without a container engine, and recognized."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import LabError

_MEDIA = "application/vnd.oci.image"


@dataclass(frozen=True)
class Image:
    """A small image: a name, programs by their path inside, links, and how it starts."""

    name: str
    files: Mapping[str, Path]
    entrypoint: Sequence[str]
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    user: str = "0:0"


def write(image: Image, path: Path) -> None:
    """Write an image as an OCI archive; the same input gives the same bytes."""
    layer = _layer(image)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": list(image.entrypoint), "Env": ["PATH=/bin"], "User": image.user},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    packed = gzip.compress(layer, compresslevel=1, mtime=0)
    blobs = [(f"{_MEDIA}.config.v1+json", _json(config)), (f"{_MEDIA}.layer.v1.tar+gzip", packed)]
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": _descriptor(*blobs[0]),
            "layers": [_descriptor(*blobs[1])],
        }
    )
    names = {"io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": image.name}
    entry = _descriptor(f"{_MEDIA}.manifest.v1+json", manifest) | {"annotations": names}
    files = {f"blobs/sha256/{_hash(blob)}": blob for blob in (manifest, *(blob for _, blob in blobs))}
    files["index.json"] = _json({"schemaVersion": 2, "manifests": [entry]})
    files["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            _add(archive, name, data, mode=0o644)


def reference(archive: Path) -> tuple[str, str]:
    """Return the name of the image in an archive and its identity, the digest of its configuration.

    Raises:
        LabError: it is no archive of one named image, neither in the OCI nor in the docker format.
    """
    try:
        with tarfile.open(archive) as tar:
            return _docker_reference(tar) if "manifest.json" in tar.getnames() else _oci_reference(tar)
    except (KeyError, ValueError, OSError, tarfile.TarError) as error:
        raise LabError(f"{archive} is no archive of one named image: {error!r}") from error


def _docker_reference(tar: tarfile.TarFile) -> tuple[str, str]:
    (image,) = _member(tar, "manifest.json")
    (name,) = image["RepoTags"]
    return name, f"sha256:{Path(image['Config']).stem}"


def _oci_reference(tar: tarfile.TarFile) -> tuple[str, str]:
    (entry,) = _member(tar, "index.json")["manifests"]
    names = entry["annotations"]
    manifest = _member(tar, f"blobs/{entry['digest'].replace(':', '/')}")
    name = names.get("io.containerd.image.name") or names["org.opencontainers.image.ref.name"]
    return name, manifest["config"]["digest"]


def _member(tar: tarfile.TarFile, name: str) -> Any:
    stream = tar.extractfile(name)
    if stream is None:
        raise KeyError(name)
    return json.load(stream)


def _layer(image: Image) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folders = {str(parent) for name in [*image.files, *image.links] for parent in Path(name).parents}
        for folder in sorted(folders - {"."} | {"tmp", "etc"}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        for name, source in sorted(image.files.items()):
            _add(archive, name, source.read_bytes(), mode=0o755)
        for name, target in sorted(image.links.items()):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(data), "size": len(data)}


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{_hash(data)}"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
