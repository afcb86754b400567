"""One Slurm cluster in the lab, as its owner sees it: custom resources outside, Slurm commands inside."""

import re
import secrets
import string
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.kubectl import Kubectl, wait_until

MANIFESTS = string.Template((Path(__file__).parents[1] / "data/e2e/cluster.yaml").read_text())
WORKERS = "app.kubernetes.io/name=slurmd"


@dataclass(frozen=True)
class SlurmCluster:
    """Controller, RestApi and one NodeSet `cpu` in a namespace of the same name."""

    kubectl: Kubectl
    name: str

    def manifests(self, *, replicas: int) -> str:
        """The whole cluster as YAML."""
        return MANIFESTS.substitute(name=self.name, replicas=replicas, key=secrets.token_hex(32))

    def create(self, *, replicas: int) -> None:
        """Apply everything at once, in no particular order."""
        self.kubectl.apply(self.manifests(replicas=replicas))

    def apply_unchecked(self, manifests: str) -> None:
        """Store objects that the webhook would refuse, as they were stored before it was there."""
        self.kubectl.run("label", "namespace", self.name, "coil.local/unchecked=true", "--overwrite")
        # The API server learns of the label from its own cache.
        wait_until(lambda: self._stored(manifests), within=10, what="the webhook leaves the namespace alone")

    def _stored(self, manifests: str) -> bool:
        try:
            self.kubectl.apply(manifests)
        except AssertionError as error:
            if "admission webhook" in str(error):
                return False
            raise
        return True

    def delete(self) -> None:
        """Remove the namespace with all that is in it, without waiting."""
        self.kubectl.run("delete", "namespace", self.name, "--wait=false", "--ignore-not-found")

    def slurm(self, *command: str, within: float = 60) -> str:
        """Run a Slurm command where slurmctld runs."""
        return self.kubectl.exec(self.name, f"{self.name}-controller-0", "slurmctld", *command, within=within)

    def try_slurm(self, *command: str) -> str:
        """As `slurm`, but an empty text while slurmctld cannot answer."""
        try:
            return self.slurm(*command, within=20)
        except (AssertionError, subprocess.TimeoutExpired):
            return ""

    def scale(self, replicas: int) -> None:
        """Set spec.replicas through the scale subresource."""
        self.kubectl.run("scale", "nodeset", "cpu", f"--replicas={replicas}", "--namespace", self.name)

    def workers(self) -> dict[str, Any]:
        """Worker pods by name."""
        pods = self.kubectl.get("pods", "--namespace", self.name, "--selector", WORKERS) or []
        return {pod["metadata"]["name"]: pod for pod in pods}

    def nodes(self) -> dict[str, str]:
        """Slurm nodes with their state as `sinfo` prints it."""
        lines = self.try_slurm("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split() for line in lines if line.strip())

    def idle(self) -> set[str]:
        """Names of the Slurm nodes that are idle."""
        return {name for name, state in self.nodes().items() if state == "idle"}

    def drain(self, node: str, reason: str) -> None:
        """Drain a Slurm node as an administrator does."""
        self.slurm("scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}")

    def drain_reason(self, node: str) -> str:
        """The reason of a Slurm node that is drained; of another one, its whole record."""
        record = self.slurm("scontrol", "show", "node", node)
        found = re.search(r"State=\S*DRAIN.*Reason=(.*?) \[", record, re.DOTALL)
        return found[1] if found else record

    def wait_idle(self, count: int, *, within: float = 90) -> set[str]:
        """Wait until exactly `count` Slurm nodes are idle."""

        def enough() -> set[str] | None:
            found = self.idle()
            return found if len(found) == count else None

        return wait_until(enough, within=within, what=f"{count} idle nodes in {self.name}")

    def submit(self, script: str, *options: str) -> int:
        """Submit a batch job; its number."""
        answer = self.slurm(
            "sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", *options, "--wrap", script
        )
        return int(answer.strip())

    def job(self, number: int) -> dict[str, str]:
        """`scontrol show job` as a mapping; empty while slurmctld cannot answer."""
        text = self.try_slurm("scontrol", "show", "job", "--oneliner", str(number))
        return dict(re.findall(r"(\w+)=(\S*)", text))

    def wait_job(self, number: int, state: str, *, within: float = 90) -> dict[str, str]:
        """Wait until the job is in a state."""

        def there() -> dict[str, str] | None:
            job = self.job(number)
            return job if job.get("JobState") == state else None

        return wait_until(there, within=within, what=f"job {number} {state} in {self.name}")

    def condition(self, kind: str, name: str, type_: str) -> dict[str, str]:
        """A condition of a custom resource; empty when absent."""
        found = self.kubectl.get(kind, name, "--namespace", self.name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == type_), {})
