"""Install the three charts into a cluster: the lab's, or any other by its kubeconfig."""

import json
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.binaries import binary

CHARTS = Path(__file__).parents[1] / "charts"
VALUES = Path(__file__).parent / "values"


@dataclass(frozen=True)
class Release:
    """One Helm release of ours."""

    name: str
    namespace: str
    values: str | None = None

    def command(self, kubeconfig: Path, extra_values: list[Path]) -> list[str]:
        """The helm command that installs or upgrades it."""
        files = [VALUES / self.values] if self.values else []
        command = [str(binary("helm")), "upgrade", "--install", self.name, str(CHARTS / self.name)]
        command += ["--kubeconfig", str(kubeconfig), "--namespace", self.namespace, "--create-namespace"]
        for file in [*files, *(extra_values if files else [])]:
            command += ["--values", str(file)]
        return [*command, "--wait", "--timeout", "3m"]


CRDS = Release("slurm-operator-crds", "slinky")
OPERATOR = Release("slurm-operator", "slinky", "operator.yaml")
SLURM = Release("slurm", "slurm", "slurm.yaml")
ACCOUNTING = VALUES / "accounting.yaml"
"""Values for a cluster with `database`."""


def install(kubeconfig: Path, extra_values: list[Path], releases: list[Release]) -> None:
    """Install or upgrade releases in order; raise with Helm's own words when one fails."""
    for release in releases:
        done = subprocess.run(
            release.command(kubeconfig, extra_values), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise InstallError(
                f"chart {release.name} in namespace {release.namespace}: {done.stderr.strip()}"
            )


def database(kubeconfig: Path, namespace: str = SLURM.namespace) -> None:
    """Make a MariaDB for slurmdbd, without waiting for it; its password stays what it is.

    It is made before the cluster is: a new slurmctld waits for slurmdbd, which waits for its database.
    """
    kubectl = [str(binary("kubectl")), "--kubeconfig", str(kubeconfig), "--namespace", namespace]
    password = f"--from-literal=password={secrets.token_urlsafe(24)}"
    for command in (
        ["create", "namespace", namespace],
        ["create", "secret", "generic", "mariadb-password", password],
        ["apply", "--filename", str(VALUES / "mariadb.yaml")],
    ):
        done = subprocess.run([*kubectl, *command], capture_output=True, text=True, check=False)
        if done.returncode != 0 and "AlreadyExists" not in done.stderr:
            raise InstallError(f"the database in namespace {namespace}: {done.stderr.strip()}")


def follow_image(kubeconfig: Path, content: str) -> None:
    """Let the operator run the image of this content: the same tag restarts nothing by itself."""
    kubectl = [str(binary("kubectl")), "--kubeconfig", str(kubeconfig), "--namespace", OPERATOR.namespace]
    annotations = {"coil.local/image": content}
    patch = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    for command in (
        ["patch", "deployment", OPERATOR.name, "--patch", json.dumps(patch)],
        ["rollout", "status", "deployment", OPERATOR.name, "--timeout", "2m"],
    ):
        done = subprocess.run([*kubectl, *command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise InstallError(f"restarting the operator with its new image: {done.stderr.strip()}")


class InstallError(Exception):
    """Helm refused; its text says why."""
