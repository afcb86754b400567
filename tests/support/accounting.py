"""A Slurm cluster in the lab that keeps accounts: slurmdbd and a MariaDB in its namespace."""

import base64
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

ROOT = Path(__file__).parents[2]
MANIFESTS = string.Template((ROOT / "tests/data/e2e/accounting.yaml").read_text())
DATABASE = ROOT / "lab/values/mariadb.yaml"


@dataclass(frozen=True)
class AccountedCluster(SlurmCluster):
    """Besides what every cluster has: an Accounting of the same name."""

    def manifests(self, *, replicas: int) -> str:
        """The whole cluster as YAML, without the database."""
        text = refer(super().manifests(replicas=replicas), self.name)
        return f"{text}\n---\n{MANIFESTS.substitute(name=self.name)}"

    def create_database(self) -> None:
        """Make the MariaDB that the Accounting names."""
        self.kubectl.run("apply", "--namespace", self.name, "--filename", str(DATABASE))

    def scale_database(self, replicas: int) -> None:
        """Take the database away or bring it back, and wait until that is done."""
        self.kubectl.run(
            "scale", "statefulset", "mariadb", f"--replicas={replicas}", "--namespace", self.name
        )
        wait_until(
            lambda: ready(self.pod("mariadb-0")) if replicas else self.pod("mariadb-0") is None,
            within=60,
            what=f"{replicas} databases",
        )

    def pod(self, name: str) -> Any:
        """A pod, None when it does not exist."""
        return self.kubectl.get("pod", name, "--namespace", self.name)

    def slurmdbd_uid(self) -> str:
        """Which incarnation of slurmdbd's pod is there; empty while there is none."""
        return uid(self.pod(f"{self.name}-accounting-0"))

    def slurmctld_uid(self) -> str:
        """Which incarnation of slurmctld's pod is there; empty while there is none."""
        return uid(self.pod(f"{self.name}-controller-0"))

    def add_accounting(self) -> None:
        """Let a cluster that was made without it refer to an Accounting, and make that."""
        self.kubectl.apply(MANIFESTS.substitute(name=self.name))
        patch = f'{{"spec": {{"accountingRef": {{"name": "{self.name}"}}}}}}'
        where = ("controller", self.name, "--namespace", self.name)
        self.kubectl.run("patch", *where, "--type=merge", "--patch", patch)

    def available(self) -> dict[str, str]:
        """Whether slurmdbd does its work, as the Accounting tells it."""
        return self.condition("accounting", self.name, "Available")

    def wait_available(self, *, within: float = 60) -> None:
        """Wait until slurmdbd has its database."""
        wait_until(
            lambda: self.available().get("status") == "True", within=within, what="slurmdbd is available"
        )

    def wait_complaint(self, words: str, *, within: float = 45) -> None:
        """Wait until the Accounting repeats what slurmdbd complains of."""

        def told() -> bool:
            found = self.available()
            return found.get("status") == "False" and words in found["message"]

        wait_until(told, within=within, what=f"the condition says {words!r}")

    def set_password(self, password: str) -> None:
        """Put another password into the Secret."""
        data = base64.b64encode(password.encode()).decode()
        patch = f'{{"data": {{"password": "{data}"}}}}'
        self.kubectl.run("patch", "secret", "mariadb-password", "--namespace", self.name, "--patch", patch)

    def recorded(self, job: int) -> str:
        """The state of a job in the database; empty while it is not there or nobody answers."""
        return self.try_slurm(
            "sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=State"
        ).strip()

    def wait_recorded(self, job: int, *, within: float = 60) -> None:
        """Wait until the database knows that a job was completed."""
        wait_until(
            lambda: self.recorded(job) == "COMPLETED", within=within, what=f"job {job} COMPLETED in sacct"
        )


def refer(manifests: str, accounting: str) -> str:
    """Let the Controller of these manifests refer to an Accounting."""
    mark = "spec:\n  slurmKeyRef"
    assert mark in manifests
    return manifests.replace(mark, f"spec:\n  accountingRef: {{name: {accounting}}}\n  slurmKeyRef", 1)


def uid(pod: Any) -> str:
    """The uid of an object; empty for None."""
    return pod["metadata"]["uid"] if pod else ""


def ready(pod: Any) -> bool:
    """Whether the kubelet says that a pod is ready."""
    conditions = (pod or {}).get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
