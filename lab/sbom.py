"""What is in an image: a CycloneDX document of its Debian packages, Python distributions and Slurm.

It is read from the finished archive, so it says what is there and not what a build meant to install. It is
flat and written without a library; the same archive gives the same document.
"""

import json
import re
import tarfile
import uuid
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

Component = dict[str, Any]

_NAMESPACE = uuid.UUID("6f0c5a52-6d7a-5e5b-9a0e-2c3f1d0c6b11")
_STATUS = "var/lib/dpkg/status"
_RELEASE = "usr/lib/os-release"
_PYTHON = re.compile(r"opt/[^/]+/[^/]+\.dist-info/METADATA")
_BUSYBOX = re.compile(rb"BusyBox v(\S+) \(Debian (\S+?)\)")


def path_of(archive: Path) -> Path:
    """Where the document of an archive lies."""
    return archive.with_suffix(".cdx.json")


def ensure(archive: Path, name: str) -> Path:
    """Write the document of an image's archive unless it is there."""
    path = path_of(archive)
    if not path.exists():
        made = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
        made.write_text(json.dumps(document(archive, name), indent=1) + "\n")
        made.rename(path)
    return path


def document(archive: Path, name: str) -> dict[str, Any]:
    """The document of an image in a docker archive."""
    files = _files(archive)
    suite = re.search(rb"^VERSION_CODENAME=(\w+)", files.get(_RELEASE, b""), re.MULTILINE)
    components = [
        *_debian(files.get(_STATUS, b"").decode(), suite[1].decode() if suite else ""),
        *(_python(content.decode()) for path, content in sorted(files.items()) if _PYTHON.fullmatch(path)),
        *_busybox(files.get("usr/bin/busybox", b"")),
    ]
    by_name = {each["name"]: each["version"] for each in components}
    own = by_name.get("coil") or _upstream(by_name.get("slurm-client", ""))
    about = {"type": "container", "bom-ref": "image", "name": name, **({"version": own} if own else {})}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, archive.name)}",
        "version": 1,
        "metadata": {"component": about},
        "components": components,
    }


def _files(archive: Path) -> dict[str, bytes]:
    """The files that tell of packages, each from the last layer that has it."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as image:
        for layer in json.load(_member(image, "manifest.json"))[0]["Layers"]:
            with tarfile.open(fileobj=_member(image, layer)) as tree:
                found |= {entry.name: _member(tree, entry.name).read() for entry in tree if _tells(entry)}
    return found


def _tells(entry: tarfile.TarInfo) -> bool:
    wanted = (_STATUS, _RELEASE, "usr/bin/busybox")
    return entry.isfile() and (entry.name in wanted or _PYTHON.fullmatch(entry.name) is not None)


def _member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    content = tar.extractfile(name)
    if content is None:
        raise ValueError(f"{name} is no file of the archive")
    return content


def _debian(status: str, suite: str) -> Iterator[Component]:
    for paragraph in status.split("\n\n"):
        package = HeaderParser().parsestr(paragraph)
        if package["Status"] == "install ok installed":
            yield _package(package["Package"], package["Version"], package["Architecture"], suite)


def _package(name: str, version: str, architecture: str, suite: str) -> Component:
    distribution = f"&distro={suite}" if suite else ""
    url = f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}?arch={architecture}{distribution}"
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def _python(metadata: str) -> Component:
    about = HeaderParser().parsestr(metadata)
    name, version = about["Name"], about["Version"]
    url = f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{version}"
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def _busybox(program: bytes) -> Iterator[Component]:
    """The one program of an image without a package database."""
    found = _BUSYBOX.search(program)
    if found:
        yield _package("busybox-static", found[2].decode(), "amd64", "")


def _upstream(version: str) -> str:
    return version.rsplit("-", 1)[0]
