"""The commands of the documentation, page by page, on a cluster installed as the quickstart says.

Only its namespace has another name than `slurm`, which belongs to the lab's demo.
"""

import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab.binaries import binary
from lab.cluster import KUBECONFIG
from lab.install import CHARTS, SLURM, VALUES, in_lab
from tests.support import docs_commands as docs
from tests.support.kubectl import Kubectl, wait_until

ROOT = CHARTS.parent
NODESET = "slurm-worker-cpu"
IMAGES = (("registry.example/mariadb:1", "coil.local/mariadb:lab"),)

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """The namespace of a release `slurm`."""
    name = f"docs-{secrets.token_hex(3)}"
    in_lab(KUBECONFIG).install(replace(SLURM, namespace=name))
    yield name
    kubectl.run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout's folder, with values of the reader."""
    for name in ("charts", "lab"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "slurm-values.yaml").write_text((VALUES / "slurm.yaml").read_text())
    return tmp_path


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem) for page in docs.pages() if docs.run_here(page)]
)
def test_the_commands_of_a_page(page: Path, kubectl: Kubectl, namespace: str, folder: Path) -> None:
    """All blocks in their order, in one shell; each command has to end well."""
    kubectl.run("scale", "nodeset", NODESET, "--replicas=2", "--namespace", namespace)
    wait_until(lambda: _idle(kubectl, namespace) == 2, within=60, what="two idle nodes")
    script = "\n".join(block.script for block in docs.run_here(page))
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", _adapted(script, namespace)],
        cwd=folder,
        env={**os.environ, "KUBECONFIG": str(KUBECONFIG), "PATH": _path()},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def _adapted(script: str, namespace: str) -> str:
    for name, here in IMAGES:
        script = script.replace(name, here)
    return re.sub(r"(-n|--namespace)([ =])slurm(?=\s|$)", rf"\1\2{namespace}", script)


def _path() -> str:
    programs = [str(binary(name).parent) for name in ("kubectl", "helm")]
    return os.pathsep.join((*programs, str(ROOT / ".venv/bin"), os.environ["PATH"]))


def _idle(kubectl: Kubectl, namespace: str) -> int:
    command = ("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N")
    try:
        return len(kubectl.exec(namespace, "slurm-controller-0", "slurmctld", *command).split())
    except AssertionError:
        return 0
