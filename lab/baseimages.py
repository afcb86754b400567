"""The images that a bare cluster needs: pause, CoreDNS, and busybox to try things with."""

import tempfile
from pathlib import Path

from lab import archives, binaries, paths
from lab.archives import Image
from lab.processes import run
from lab.progress import step

PAUSE = "coil.local/pause:lab"
COREDNS = "coil.local/coredns:lab"
BUSYBOX = "coil.local/busybox:lab"


def ensure() -> list[Path]:
    """Return the archives of all three, made where the cache lacks them.

    Raises:
        LabError: a program is not built, or Debian's archive cannot be reached.
    """
    pause, coredns = binaries.binary("pause"), binaries.binary("coredns")
    # Names below 1024 need no root in a pod's own network, so CoreDNS runs as nobody.
    return [
        ensure_image(pause.parent, Image(PAUSE, {"pause": pause}, ["/pause"], user="65535:65535")),
        ensure_image(coredns.parent, Image(COREDNS, {"coredns": coredns}, ["/coredns"], user="65534:65534")),
        _busybox(),
    ]


def ensure_image(folder: Path, image: Image) -> Path:
    """Return the archive of an image in a folder that is named by its content, made where it is missing."""
    archive = folder / "image.tar"
    if not archive.exists():
        scratch = folder / ".image.tar.new"
        archives.write(image, scratch)
        scratch.rename(archive)
    return archive


def _busybox() -> Path:
    folder = paths.cache() / "bin" / "busybox"
    if (folder / "image.tar").exists():
        return folder / "image.tar"
    folder.mkdir(parents=True, exist_ok=True)
    with step("busybox: taken from Debian"), tempfile.TemporaryDirectory(dir=folder) as scratch:
        run("sh", "-c", 'cd "$0" && chmod 777 . && apt-get download -q busybox-static', scratch)
        package = next(Path(scratch).glob("*.deb"))
        run("dpkg-deb", "--extract", str(package), scratch)
        program = next(path for path in Path(scratch).rglob("busybox") if path.parent.name == "bin")
        applets = run(str(program), "--list").split()
        links = {f"bin/{applet}": "busybox" for applet in applets if applet != "busybox"}
        return ensure_image(folder, Image(BUSYBOX, {"bin/busybox": program}, ["/bin/sh"], links))
