"""Install the three charts into a cluster: the lab's, or any other by its kubeconfig."""

import json
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import binaries

CHARTS = Path(__file__).parents[1] / "charts"
VALUES = Path(__file__).parent / "values"
ACCOUNTING = VALUES / "accounting.yaml"
"""Values for a cluster with a database."""


class InstallError(Exception):
    """A tool refused; its text says why."""


@dataclass(frozen=True)
class Release:
    """One Helm release of ours."""

    name: str
    namespace: str
    values: tuple[Path, ...] = ()


CRDS = Release("slurm-operator-crds", "slinky")
OPERATOR = Release("slurm-operator", "slinky", (VALUES / "operator.yaml",))
SLURM = Release("slurm", "slurm", (VALUES / "slurm.yaml",))
PROGRAMS = (OPERATOR.name, f"{OPERATOR.name}-webhook")
"""Deployments of the operator's release."""


@dataclass(frozen=True)
class Cluster:
    """A cluster to install into, and the programs to do it with."""

    kubeconfig: Path
    kubectl: Path
    helm: Path

    def install(self, release: Release, values: Sequence[Path] = ()) -> None:
        """Install or upgrade a release; later files of values win."""
        command = [str(self.helm), "upgrade", "--install", release.name, str(CHARTS / release.name)]
        command += ["--kubeconfig", str(self.kubeconfig)]
        command += ["--namespace", release.namespace, "--create-namespace"]
        for file in (*release.values, *values):
            command += ["--values", str(file)]
        where = f"chart {release.name} in namespace {release.namespace}"
        _run([*command, "--wait", "--timeout", "3m"], where)

    def database(self, namespace: str = SLURM.namespace) -> None:
        """Make a MariaDB for slurmdbd, without waiting for it; its password stays what it is.

        It is made before the cluster is: a new slurmctld waits for slurmdbd, which waits for its database.
        """
        password = f"--from-literal=password={secrets.token_urlsafe(24)}"
        where = f"the database in namespace {namespace}"
        for command in (
            ["create", "namespace", namespace],
            ["create", "secret", "generic", "mariadb-password", password],
            ["apply", "--filename", str(VALUES / "mariadb.yaml")],
        ):
            self._kubectl(namespace, command, where, harmless="already exists")

    def follow_image(self, content: str) -> None:
        """Let operator and webhook run the image of this content: the same tag restarts nothing by itself."""
        annotations = {"coil.local/image": content}
        patch = json.dumps({"spec": {"template": {"metadata": {"annotations": annotations}}}})
        commands = [["patch", "deployment", *PROGRAMS, "--patch", patch]]
        commands += [["rollout", "status", "deployment", name, "--timeout", "2m"] for name in PROGRAMS]
        for command in commands:
            self._kubectl(OPERATOR.namespace, command, "restarting the operator with its new image")

    def _kubectl(self, namespace: str, arguments: Sequence[str], where: str, harmless: str = "") -> None:
        prefix = [str(self.kubectl), "--kubeconfig", str(self.kubeconfig), "--namespace", namespace]
        _run([*prefix, *arguments], where, harmless)


def in_lab(kubeconfig: Path) -> Cluster:
    """The lab's cluster, with the programs that were built with it."""
    return Cluster(kubeconfig, binaries.binary("kubectl"), binaries.binary("helm"))


def elsewhere(kubeconfig: Path) -> Cluster:
    """Somebody's cluster, with the programs that person has; what is missing is built."""
    found = {name: shutil.which(name) for name in ("kubectl", "helm")}
    if None in found.values():
        binaries.ensure("kubernetes", "helm")
    programs = {name: Path(path) if path else binaries.binary(name) for name, path in found.items()}
    return Cluster(kubeconfig, **programs)


def _run(command: Sequence[str], where: str, harmless: str = "") -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and not (harmless and harmless in done.stderr):
        raise InstallError(f"{where}: {done.stderr.strip()}")
