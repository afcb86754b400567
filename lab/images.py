"""Build the container images of `images/` without a container engine, cached by content.

`build(names)` returns one archive for each image, ready for ``ctr images import``. An archive is named
by a hash of everything that goes into its image (Containerfile, copied files, build arguments, base), so
an unchanged image costs reading its inputs and no more.

``python -m lab.images [NAME ...]`` builds and prints a table.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab import rootfs, sbom

ROOT = Path(__file__).resolve().parent.parent
BASE_IMAGE = "coil.local/base:lab"
PYTHON_VERSION = "3.14"
"""Version of the suite's Python: the operator image's wheels must be made for it."""


class BuildError(RuntimeError):
    """An image cannot be built; the text has the end of the build's output."""


@dataclass(frozen=True)
class Image:
    """How one image is built; paths are relative to the repository."""

    name: str
    context: str = "images"
    inputs: tuple[str, ...] = ()
    build_args: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    """The folder of images/ with its Containerfile; its name when empty."""
    wheels: str = ""
    """A requirements file whose wheels are handed to the build, so that it needs no package index."""

    @property
    def reference(self) -> str:
        """The image's name in the lab."""
        return f"coil.local/{self.name}:lab"

    @property
    def containerfile(self) -> Path:
        """The file that says how the image is built."""
        return ROOT / "images" / (self.folder or self.name) / "Containerfile"


_COMMON = "images/common"
_INIT = "images/init"

IMAGES = {
    image.name: image
    for image in (
        Image("slurmctld", inputs=(_COMMON, _INIT)),
        # Most clusters of the lab have no directory service: SSSD would add 120 MB for nothing.
        Image("slurmd", inputs=(_COMMON, _INIT), build_args={"SSSD": "0"}),
        Image("worker-sssd", folder="slurmd", inputs=(_COMMON, _INIT)),
        Image("slurmdbd", inputs=(_COMMON,)),
        Image("slurmrestd", inputs=(_COMMON,)),
        Image("sackd", inputs=(_COMMON, _INIT)),
        Image("login", inputs=(_COMMON, _INIT)),
        Image("tools", inputs=(_COMMON,)),
        Image("ldap", inputs=(_COMMON,)),
        Image("mariadb", inputs=(_COMMON,)),
        Image("prometheus", inputs=(_COMMON,)),
        Image(
            "operator",
            context=".",
            inputs=(
                _COMMON,
                "src/coil",
                "pyproject.toml",
                "README.md",
                "LICENSE",
                "requirements/runtime.lock",
            ),
            wheels="requirements/runtime.lock",
        ),
    )
}

DEFAULT = ("slurmctld", "slurmd", "slurmrestd", "slurmdbd", "mariadb", "tools", "operator")
"""What the cluster of `make up` needs: one without login nodes."""


def build(names: Iterable[str] = DEFAULT, *, report: Callable[[str], None] = print) -> dict[str, Path]:
    """Build the named images where they changed and return their archives by image name."""
    made: dict[str, Path] = {}
    with rootfs.locked("images"):
        for name in names:
            image = IMAGES[name]
            made[name] = archive = archive_path(image)
            if not archive.exists():
                _build_one(image, archive, report)
            _name_file(f"{name}.tar", archive)
            _name_file(f"{name}.cdx.json", sbom.ensure(archive, image.reference))
    return made


def _name_file(name: str, file: Path) -> None:
    """Let a plain name point at the newest file, for people and scripts."""
    link = file.with_name(name)
    if not link.is_symlink() or link.readlink() != Path(file.name):
        link.unlink(missing_ok=True)
        link.symlink_to(file.name)


def archives(names: Iterable[str] = IMAGES) -> dict[str, Path]:
    """Return the archives that exist for the present content, by image name; builds nothing."""
    found = {name: archive_path(IMAGES[name]) for name in names}
    return {name: path for name, path in found.items() if path.exists()}


def archive_path(image: Image) -> Path:
    """Return where the archive of the image's present content is, or would be."""
    return rootfs.cache_dir() / "images" / f"{image.name}-{content_key(image)}.tar"


def content_key(image: Image) -> str:
    """Return 16 hex digits that change with anything the image is made from."""
    digest = hashlib.sha256(json.dumps([rootfs.BASE.key, sorted(image.build_args.items())]).encode())
    for path in _input_files(image):
        digest.update(f"\0{path.relative_to(ROOT)}\0{path.stat().st_mode & 0o111:o}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _input_files(image: Image) -> Iterator[Path]:
    for entry in (f"images/{image.folder or image.name}", *image.inputs):
        top = ROOT / entry
        if not top.exists():
            msg = f"image {image.name}: {entry} is missing"
            raise BuildError(msg)
        files = [top] if top.is_file() else sorted(path for path in top.rglob("*") if path.is_file())
        yield from (path for path in files if "__pycache__" not in path.parts)


def _build_one(image: Image, archive: Path, report: Callable[[str], None]) -> None:
    report(f"==> image {image.reference}: building ...")
    began = time.monotonic()
    archive.parent.mkdir(parents=True, exist_ok=True)
    _ensure_base(report)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".making-") as folder:
        _run_build(image, Path(folder))
        built = time.monotonic()
        made = Path(folder) / "image.tar"
        _buildah("push", image.reference, f"docker-archive:{made}:{image.reference}")
        made.rename(archive)
    # The one before stays: somebody may be reading it.
    made_before = sorted(archive.parent.glob(f"{image.name}-*.tar"), key=lambda path: path.stat().st_mtime)
    for old in made_before[:-2]:
        old.unlink()
        sbom.path_of(old).unlink(missing_ok=True)
    report(
        f"    {image.reference}: {archive.stat().st_size / 1e6:.0f} MB, built in {built - began:.0f} s, "
        f"archived in {time.monotonic() - built:.0f} s"
    )


def _run_build(image: Image, work: Path) -> None:
    # The machine's archive reaches the build as a secret: no layer and no history keeps it.
    sources = work / "apt-sources"
    sources.write_text(rootfs.sources_text())
    command = [
        "build",
        "--layers",
        "--pull-never",
        "--isolation=chroot",
        f"--secret=id=apt-sources,src={sources}",
        f"--volume={_apt_store()}:/var/cache/install-packages",
        f"--build-arg=BASE={BASE_IMAGE}",
        *(f"--build-arg={name}={value}" for name, value in sorted(image.build_args.items())),
        f"--file={image.containerfile}",
        f"--tag={image.reference}",
    ]
    if image.wheels:
        command.append(f"--volume={_wheels(image)}:/wheels:ro")
    _buildah(*command, str(ROOT / image.context))


def extend(folder: Path, archive: Path, names: Sequence[str], build_args: Mapping[str, str]) -> None:
    """Build a folder's Containerfile, whose words for our images are those of the docs, into an archive."""
    with rootfs.locked("images"):
        for name in names:
            _buildah("pull", "--quiet", f"docker-archive:{archive_path(IMAGES[name])}")
            _buildah("tag", IMAGES[name].reference, f"registry.example/{name}:26.05")
        sources = archive.with_suffix(".sources")
        sources.write_text(rootfs.sources_text())
        made = f"coil.local/extended-{names[-1]}:lab"
        options = [f"--build-arg={name}={value}" for name, value in build_args.items()]
        options += ["--layers", "--pull-never", "--isolation=chroot", f"--tag={made}"]
        options += [f"--secret=id=apt-sources,src={sources}"]
        options += [f"--volume={_apt_store()}:/var/cache/install-packages"]
        _buildah("build", *options, str(folder))
        _buildah("push", made, f"docker-archive:{archive}")


def _apt_store() -> Path:
    """Return a folder that keeps indexes and packages for the next build; never part of an image."""
    folder = rootfs.cache_dir() / "apt"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _wheels(image: Image) -> Path:
    """Return a folder with the wheels of the image's lock for the suite's Python, from pip's own index."""
    lock = ROOT / image.wheels
    key = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    folder = rootfs.cache_dir() / "wheels" / key
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as temporary:
            made = Path(temporary) / key
            _pip_download(lock, made)
            made.rename(folder)
    return folder


def _pip_download(lock: Path, folder: Path) -> None:
    options = [
        f"--python-version={PYTHON_VERSION}",
        "--implementation=cp",
        "--only-binary=:all:",
        "--no-deps",
    ]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", *options]
    command += [f"--requirement={lock}", f"--dest={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"cannot download the wheels of {lock.name} for Python {PYTHON_VERSION}:\n{done.stderr[-2000:]}"
        raise BuildError(msg)


def _ensure_base(report: Callable[[str], None]) -> None:
    tagged = f"coil.local/base:{rootfs.BASE.key}"
    if _buildah("images", "--quiet", tagged, check=False).returncode == 0:
        return
    archive = rootfs.base_archive()
    report(f"    {BASE_IMAGE}: importing {archive.name}")
    container = _buildah("from", "scratch").stdout.strip()
    try:
        _buildah("add", "--quiet", container, str(archive), "/")
        _buildah(
            "config",
            "--cmd=/bin/bash",
            "--env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            container,
        )
        _buildah("commit", "--quiet", container, tagged)
    finally:
        _buildah("rm", container)
    _buildah("tag", tagged, BASE_IMAGE)


def _buildah(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = ["buildah", *_storage(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        shown = f"buildah {arguments[0]} {arguments[-1]}"
        msg = f"{shown} failed ({done.returncode}):\n{(done.stdout + done.stderr)[-4000:]}"
        raise BuildError(msg)
    return done


@functools.cache
def _storage() -> Sequence[str]:
    """Options that keep our images apart from those of other users of buildah on this machine."""
    if shutil.which("buildah") is None:
        msg = "buildah is missing: apt-get install buildah"
        raise BuildError(msg)
    home = rootfs.cache_dir() / "buildah"
    home.mkdir(parents=True, exist_ok=True)
    driver = "overlay" if _overlay_works(home) else "vfs"
    run = Path(os.environ.get("XDG_RUNTIME_DIR", "/run")) / "coil-images"
    return (f"--root={home / driver}", f"--runroot={run}", f"--storage-driver={driver}")


def _overlay_works(folder: Path) -> bool:
    """Tell whether this kernel and file system stack overlays (inside many containers they do not)."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        parts = {name: Path(temporary) / name for name in ("lower", "upper", "work", "merged")}
        for path in parts.values():
            path.mkdir()
        options = f"lowerdir={parts['lower']},upperdir={parts['upper']},workdir={parts['work']}"
        mount = ["mount", "-t", "overlay", "overlay", "-o", options, str(parts["merged"])]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            return False
        subprocess.run(["umount", str(parts["merged"])], check=True)
        return True


def main(names: Sequence[str]) -> int:
    """Build the named images, or all of them, and print their archives."""
    try:
        made = build(names or tuple(IMAGES))
    except (BuildError, rootfs.RootfsError) as error:
        print(error, file=sys.stderr)
        return 1
    for name, path in made.items():
        print(f"{IMAGES[name].reference:30} {path.stat().st_size / 1e6:6.0f} MB  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
