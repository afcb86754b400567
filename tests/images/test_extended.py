"""Images made from the lab's by the words of docs/images.md; install-packages needs the archive."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import images, sbom
from tests.support.container import Container, write
from tests.support.image_cluster import KEY, Cluster, free_port, status

SPANK = Path(__file__).parents[1] / "data/spank"
NAMED = {"squashfs-tools", "squashfuse", "fuse-overlayfs", "pigz", "jq", "parallel", "curl"}
"""Packages of the recipe for Pyxis."""

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(300),  # the first run builds what is missing
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root"),
]


def extended(section: str, folder: Path, archive: Path, *names: str, **build_args: str) -> set[str]:
    """Build the Containerfile of a section of docs/images.md; the packages that it adds to the last image."""
    page = (images.ROOT / "docs/images.md").read_text().split(f"## {section}\n")[1]
    (folder / "Containerfile").write_text(page.split("```Dockerfile\n")[1].split("```")[0])
    own = images.build(names)[names[-1]]
    try:
        images.extend(folder, archive, names, build_args)
    except images.BuildError as error:
        if re.search(r"Failed to fetch|Could not connect|Temporary failure", str(error)):
            pytest.skip("no Debian archive within reach")
        raise
    before, after = (
        {each["name"] for each in sbom.document(path, "image")["components"]} for path in (own, archive)
    )
    assert before < after
    return after - before


def test_the_three_lines_of_the_docs_extend_an_image(tmp_path: Path) -> None:
    """An image with one more package and a file."""
    write(tmp_path / "prolog.sh", b"#!/bin/sh\n", 0, 0o755)
    assert "lua5.4" in extended("Extend", tmp_path, tmp_path / "image.tar", "slurmd")


def package(folder: Path) -> None:
    """Make a Debian package, as the recipe takes those of enroot."""
    control = "Package: stand-in\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: one\n"
    for name, text in {"DEBIAN/control": control, "usr/bin/stand-in": "#!/bin/sh\n"}.items():
        (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder / "tree" / name, text.encode(), 0, 0o755)
    command = ["dpkg-deb", "--root-owner-group", "--build", str(folder / "tree"), str(folder / "debs")]
    (folder / "debs").mkdir()
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    subprocess.run(command, env=environ, check=True, capture_output=True)


def test_a_spank_plugin_by_the_recipe_for_pyxis(tmp_path: Path) -> None:
    """A plugin of ours in its place: built by the recipe, in slurmd and login, not in slurmctld."""
    shutil.copytree(SPANK, tmp_path / "pyxis")
    package(tmp_path)
    archives = {name: tmp_path / f"extended-{name}-{os.urandom(4).hex()}.tar" for name in ("slurmd", "login")}
    for name, archive in archives.items():
        added = extended("Pyxis and enroot", tmp_path, archive, "slurmd", name, IMAGE=name)
        assert added >= NAMED | {"stand-in"}
    cluster = Cluster()
    etc = cluster.controller.scratch / "volumes/etc-slurm"
    write(etc / "plugstack.conf", b"include /usr/share/pyxis/*\n")
    write(etc / "slurm.conf", f"{cluster.conf}DebugFlags=GLOB_SILENCE\n".encode())
    server = (f"--conf-server=127.0.0.1:{cluster.port}", f"--port={free_port()}")  # slurmd's, if not told
    login = Container("login", *server, archive=archives["login"])
    write(login.volume("/etc/slurm") / "slurm.key", KEY, 401, 0o600)
    login.volume("/run", mode=0o755)
    worker = cluster.worker("worker-0", archive=archives["slurmd"])
    with cluster.controller, login, worker:
        worker.until(lambda: status(cluster.worker_port, "/readyz") == 204, "slurmd ready")
        login.until(lambda: login.run("test", "-S", "/run/slurm/sack.socket").returncode == 0, "sack socket")
        shown = login.run("srun", "--time=1", "--hello", "printenv", "HELLO", user="401:401")
        assert shown.stdout == "from spank_pyxis.so\n", shown.stderr + worker.output()
        plain = login.run("srun", "--time=1", "sh", "-c", "echo HELLO=$HELLO", user="401:401")
        assert plain.stdout == "HELLO=\n", plain.stderr
        # slurmctld's image has no plugin: its own srun does not know the option, and runs jobs all the same.
        refused = cluster.controller.run("srun", "--time=1", "--hello", "true", user="401:401")
        assert "unrecognized option" in refused.stderr
        assert cluster.controller.run("srun", "--time=1", "hostname", user="401:401").stdout == "worker-0\n"
        said = cluster.controller.output().lower()
        assert "spank" not in said
        assert "plugstack" not in said
