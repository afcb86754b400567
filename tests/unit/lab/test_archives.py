"""Images written and recognized without a container engine."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from lab import archives
from lab.archives import Image
from lab.errors import LabError


@pytest.fixture
def image(tmp_path: Path) -> Image:
    program = tmp_path / "hello"
    program.write_bytes(b"#!/bin/sh\n")
    return Image("coil.local/hello:lab", {"bin/hello": program}, ["/bin/hello"], links={"bin/hi": "hello"})


def _members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {name: stream.read() for name in tar.getnames() if (stream := tar.extractfile(name))}


def test_every_blob_is_named_by_its_digest_and_the_layer_holds_the_files(
    image: Image, tmp_path: Path
) -> None:
    archives.write(image, tmp_path / "image.tar")

    members = _members(tmp_path / "image.tar")
    manifest = json.loads(members[_blob(json.loads(members["index.json"])["manifests"][0])])
    config = json.loads(members[_blob(manifest["config"])])
    with tarfile.open(fileobj=io.BytesIO(members[_blob(manifest["layers"][0])])) as layer:
        names = set(layer.getnames())
        assert layer.getmember("bin/hello").mode == 0o755
        assert layer.getmember("bin/hi").linkname == "hello"
    assert {"bin", "tmp", "etc"} <= names
    assert config["config"]["Entrypoint"] == ["/bin/hello"]


def test_the_same_input_gives_the_same_bytes(image: Image, tmp_path: Path) -> None:
    for name in ("one", "two"):
        archives.write(image, tmp_path / name)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_an_image_is_known_by_the_digest_of_its_configuration(image: Image, tmp_path: Path) -> None:
    archives.write(image, tmp_path / "image.tar")

    name, identity = archives.reference(tmp_path / "image.tar")

    assert name == "coil.local/hello:lab"
    assert f"blobs/{identity.replace(':', '/')}" in _members(tmp_path / "image.tar")


def test_a_docker_archive_is_known_the_same_way(tmp_path: Path) -> None:
    manifest = [{"Config": "abc123.json", "RepoTags": ["coil.local/hello:lab"], "Layers": []}]
    _write_tar(tmp_path / "image.tar", {"manifest.json": json.dumps(manifest).encode()})

    assert archives.reference(tmp_path / "image.tar") == ("coil.local/hello:lab", "sha256:abc123")


@pytest.mark.parametrize("members", [{}, {"index.json": b"{}"}, {"manifest.json": b"[]"}])
def test_a_file_that_is_no_image_is_refused_by_name(members: dict[str, bytes], tmp_path: Path) -> None:
    _write_tar(tmp_path / "other.tar", members)

    with pytest.raises(LabError, match=r"other\.tar is no archive of one named image"):
        archives.reference(tmp_path / "other.tar")


def _blob(descriptor: dict[str, Any]) -> str:
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def _write_tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
