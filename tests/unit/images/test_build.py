"""Where the images' packages come from, and when an image is built again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import images, rootfs

OS_RELEASE = 'ID=debian\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian"\n'
DEB822 = """Types: deb
# a comment
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://archive.example/security
Suites: bookworm-security
Components: main

Types: deb
URIs: https://vendor.example
Suites: stable
"""


def addresses(folder: Path, files: dict[str, str], os_release: str = OS_RELEASE) -> list[str]:
    (folder / "sources.list.d").mkdir()
    (folder / "os-release").write_text(os_release)
    for name, text in files.items():
        (folder / name).write_text(text)
    return rootfs.archive_addresses(folder, folder / "os-release")


@pytest.fixture(autouse=True)
def _no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COIL_DEBIAN_ARCHIVE", raising=False)


@pytest.mark.parametrize(
    "files",
    [
        {"sources.list.d/debian.sources": DEB822},
        {"sources.list": "deb http://archive.example/debian bookworm main\n"},
        {
            "sources.list": "# deb http://old.example/ bookworm main\n"
            "deb [arch=amd64 signed-by=/k.gpg] http://archive.example/debian bookworm main contrib\n"
            "deb http://archive.example/security bookworm-security main\n",
            "sources.list.d/vendor.list": "deb https://vendor.example stable main\n",
        },
    ],
)
def test_the_main_archive_of_the_machine_is_found(tmp_path: Path, files: dict[str, str]) -> None:
    assert addresses(tmp_path, files) == ["http://archive.example/debian"]


def test_a_machine_without_an_archive_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(rootfs.RootfsError, match="set COIL_DEBIAN_ARCHIVE"):
        addresses(tmp_path, {"sources.list": "deb https://vendor.example stable main\n"})


def test_the_environment_names_an_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COIL_DEBIAN_ARCHIVE", "http://other.example/debian")
    assert addresses(tmp_path, {}, "ID=other\n") == ["http://other.example/debian"]
    assert rootfs.sources_text() == "deb http://other.example/debian forky main\n"


def test_a_root_file_system_of_other_inputs_has_another_key() -> None:
    recipe = rootfs.Recipe(include=("a",))
    assert recipe.key == rootfs.Recipe(include=("a",)).key
    others = [rootfs.Recipe(include=("b",)), rootfs.Recipe(include=("a",), suite="sid")]
    assert recipe.key not in {other.key for other in others}


def test_an_image_is_built_again_when_an_input_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "ROOT", tmp_path)
    (tmp_path / "images/x/__pycache__").mkdir(parents=True)
    containerfile = tmp_path / "images/x/Containerfile"
    containerfile.write_text("FROM scratch\n")
    (tmp_path / "lib").mkdir()
    helper = tmp_path / "lib/helper"
    helper.write_text("1")
    image = images.Image("x", inputs=("lib",))
    key = images.content_key(image)

    (tmp_path / "images/x/__pycache__/a.pyc").write_text("no input")
    assert images.content_key(image) == key
    helper.chmod(0o755)
    executable = images.content_key(image)
    helper.write_text("2")
    changed = images.content_key(image)
    with_argument = images.content_key(images.Image("x", inputs=("lib",), build_args={"A": "1"}))
    assert len({key, executable, changed, with_argument}) == 4


def test_a_missing_input_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "ROOT", tmp_path)
    with pytest.raises(images.BuildError, match="image x: images/x is missing"):
        images.content_key(images.Image("x"))


def test_every_image_has_a_containerfile_with_a_base_to_choose() -> None:
    for image in images.IMAGES.values():
        assert "ARG BASE=debian:forky\n" in image.containerfile.read_text(), image.name
    assert set(images.DEFAULT) <= set(images.IMAGES)
