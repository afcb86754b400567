"""Run an image's entry point as process 1 of its own PID and mount namespaces, without a container engine.

The image's archive is unpacked once into the cache and mounted below a scratch overlay; user, environment
and command come from its configuration; the network is the host's. Root only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lab import images, rootfs

_ENTER = """
set -e
mount --make-rprivate /
hostname "$NAME"
mount -t overlay overlay -o "lowerdir=$LOWER,upperdir=$SCRATCH/upper,workdir=$SCRATCH/work" "$SCRATCH/root"
cd "$SCRATCH/root"
mkdir -p proc dev sys etc
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
cp /etc/resolv.conf /etc/hosts etc/
while read -r from path; do
    target="$SCRATCH/root$path"
    if [ -d "$from" ]; then mkdir -p "$target"; else mkdir -p "${target%/*}"; touch "$target"; fi
    mount --bind "$from" "$target"
done <"$SCRATCH/mounts"
exec chroot --userspec="$RUN_AS" --groups= "$SCRATCH/root" /usr/bin/env -i "$@"
"""


class Container:
    """One running image; a context manager that leaves no process and no mount behind."""

    def __init__(
        self,
        image: str,
        *arguments: str,
        user: str | None = None,
        environ: Mapping[str, str] | None = None,
        entrypoint: Sequence[str] | None = None,
        hostname: str = "",
        archive: Path | None = None,
    ) -> None:
        """Prepare a container of `image`, or of an archive made from it; volumes and files come first."""
        self._archive = archive or images.build([image])[image]
        self._config = _config(self._archive)
        self._arguments = arguments
        self._user = user
        self._environ = dict(environ or {})
        self._entrypoint = entrypoint
        self._hostname = hostname or socket.gethostname()
        self.scratch = Path(tempfile.mkdtemp(prefix="coil-container-"))
        self._clean = weakref.finalize(self, shutil.rmtree, self.scratch)
        for name in ("upper", "work", "root", "volumes"):
            (self.scratch / name).mkdir()
        self.scratch.chmod(0o755)
        (self.scratch / "mounts").touch()
        self.log = self.scratch / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._image = image

    def volume(self, path: str, owner: int = 0, mode: int = 0o755) -> Path:
        """Return an empty folder that is mounted at `path` in the container."""
        folder = self._source(path)
        folder.mkdir()
        folder.chmod(mode)
        os.chown(folder, owner, owner)
        return folder

    def file(self, path: str, content: bytes, owner: int = 0, mode: int = 0o644) -> None:
        """Mount a single file at `path`, as a sub-path of a volume does."""
        source = self._source(path)
        write(source, content, owner, mode)

    def _source(self, path: str) -> Path:
        source = self.scratch / "volumes" / path.strip("/").replace("/", "-")
        with (self.scratch / "mounts").open("a") as mounts:
            mounts.write(f"{source} {path}\n")
        return source

    def __enter__(self) -> Self:
        """Start the container."""
        user = self._user or self._config.get("User") or "0:0"
        pairs = [*self._config.get("Env", []), *(f"{k}={v}" for k, v in self._environ.items())]
        command = [*(self._entrypoint or self._config.get("Entrypoint") or [])]
        command += self._arguments or self._config.get("Cmd") or []
        environ = {
            **os.environ,
            "LOWER": str(unpacked(self._archive)),
            "SCRATCH": str(self.scratch),
            "RUN_AS": user,
            "NAME": self._hostname,
        }
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*unshare, "sh", "-c", _ENTER, "sh", *pairs, *command], env=environ, stdout=log, stderr=log
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it however it is."""
        if self._process and self._process.poll() is None:
            # Process 1 itself, and with it all of its namespace: `--kill-child` is forgotten by the kernel
            # when the program takes another user.
            with suppress(AssertionError, ProcessLookupError):
                self.signal(signal.SIGKILL)
            self._process.wait(10)
        self._clean()

    @property
    def pid(self) -> int:
        """Process id, on the host, of the container's process 1."""
        assert self._process
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        while self._process.poll() is None:
            if found := children.read_text().split():
                return int(found[0])
        msg = f"{self._image} has ended:\n{self.output()[-4000:]}"
        raise AssertionError(msg)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to process 1."""
        os.kill(self.pid, number)

    def wait(self, timeout: float) -> int:
        """Wait for the end and return the exit code."""
        assert self._process
        return self._process.wait(timeout)

    def run(self, *command: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as `kubectl exec` does."""
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--uts", "--pid", "--root", "--wd=/"]
        if user:
            enter += ["chroot", f"--userspec={user}", "/"]
        return subprocess.run([*enter, *command], capture_output=True, text=True, timeout=30, check=False)

    def output(self) -> str:
        """Return what it has printed so far."""
        return self.log.read_text(errors="replace")

    def until(self, condition: Callable[[], Any], what: str, timeout: float = 15) -> Any:
        """Poll until `condition()` is true and return its value; fails with the container's output."""
        deadline = time.monotonic() + timeout
        while not (value := condition()):
            if time.monotonic() > deadline:
                msg = f"{self._image}: not within {timeout:g} s: {what}\n{self.output()[-4000:]}"
                raise AssertionError(msg)
            time.sleep(0.05)
        return value


def write(path: Path, content: bytes, owner: int = 0, mode: int = 0o644) -> None:
    """Write a file with an owner and a mode."""
    path.write_bytes(content)
    path.chmod(mode)
    os.chown(path, owner, owner)


def image_config(image: str) -> dict[str, Any]:
    """Return the configuration that an image carries (user, entry point, ports)."""
    return _config(images.build([image])[image])


def _config(path: Path) -> dict[str, Any]:
    with tarfile.open(path) as archive:
        manifest = json.loads(_read(archive, "manifest.json"))[0]
        return json.loads(_read(archive, manifest["Config"]))["config"]


def unpacked(archive: Path) -> Path:
    """Return a folder with the merged layers of a docker archive; kept in the cache."""
    target = rootfs.cache_dir() / "unpacked" / archive.stem
    with rootfs.locked("unpacked"):
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent) as work:
                _unpack(archive, Path(work) / "root")
                (Path(work) / "root").rename(target)
            for old in target.parent.glob(f"{archive.stem.rpartition('-')[0]}-*"):
                if old != target:
                    shutil.rmtree(old)
    return target


def _unpack(archive: Path, root: Path) -> None:
    root.mkdir()
    with tarfile.open(archive) as outer:
        for layer in json.loads(_read(outer, "manifest.json"))[0]["Layers"]:
            stream = outer.extractfile(layer)
            assert stream
            untar = ["tar", "--extract", "--directory", str(root), "--numeric-owner", "--file=-"]
            subprocess.run(untar, input=stream.read(), check=True)
            for mark in list(root.rglob(".wh.*")):
                _apply_whiteout(mark)


def _apply_whiteout(mark: Path) -> None:
    """Remove what a layer says is gone."""
    mark.unlink()
    gone = mark.parent / mark.name.removeprefix(".wh.")
    if gone.is_dir() and not gone.is_symlink():
        shutil.rmtree(gone)
    else:
        gone.unlink(missing_ok=True)


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    assert stream
    return stream.read()
