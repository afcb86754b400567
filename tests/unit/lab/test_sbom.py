"""What an image's bill of materials says, from archives made here."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from lab import sbom

STATUS = """Package: slurm-client
Status: install ok installed
Architecture: amd64
Version: 26.05.5-1

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: tini
Status: install ok installed
Architecture: amd64
Version: 1:0.19+dfsg-2
Description: several
 lines
"""
METADATA = "Metadata-Version: 2.4\nName: prometheus_client\nVersion: 0.26.0\n\nName: not this one\n"


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An image of two layers; the second has a newer package database."""
    layers: tuple[dict[str, str], ...] = (
        {
            "var/lib/dpkg/status": STATUS.split("\n\n")[2],
            "usr/lib/os-release": "ID=debian\nVERSION_CODENAME=forky\n",
        },
        {"var/lib/dpkg/status": STATUS, "opt/coil/prometheus_client-0.26.0.dist-info/METADATA": METADATA},
    )
    path = tmp_path / "slurmctld-0123.tar"
    with tarfile.open(path, "w") as image:
        for number, files in enumerate(layers):
            layer = io.BytesIO()
            with tarfile.open(fileobj=layer, mode="w") as tree:
                for name, text in files.items():
                    add(tree, name, text.encode())
            add(image, f"{number}.tar", layer.getvalue())
        add(image, "manifest.json", json.dumps([{"Layers": ["0.tar", "1.tar"]}]).encode())
    return path


def test_packages_of_the_last_layer_s_database_and_of_python(archive: Path) -> None:
    found = sbom.document(archive, "coil.local/slurmctld:lab")
    assert [each["purl"] for each in found["components"]] == [
        "pkg:deb/debian/slurm-client@26.05.5-1?arch=amd64&distro=forky",
        "pkg:deb/debian/tini@1%3A0.19%2Bdfsg-2?arch=amd64&distro=forky",
        "pkg:pypi/prometheus-client@0.26.0",
    ]
    assert found["metadata"]["component"]["version"] == "26.05.5"
    references = [each["bom-ref"] for each in found["components"]]
    assert len(set(references)) == len(references)


def test_the_same_archive_gives_the_same_document_once(archive: Path) -> None:
    path = sbom.ensure(archive, "coil.local/slurmctld:lab")
    assert path.name == "slurmctld-0123.cdx.json"
    assert json.loads(path.read_text()) == sbom.document(archive, "coil.local/slurmctld:lab")
    before = path.stat().st_mtime_ns
    sbom.ensure(archive, "coil.local/slurmctld:lab")
    assert path.stat().st_mtime_ns == before
