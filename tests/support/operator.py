"""The operator in the lab: its pods, its processes on the host, its requests in the audit log."""

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.kubectl import Kubectl, wait_until

NAMESPACE = "slinky"
DEPLOYMENT = "slurm-operator"
SELECTOR = "app.kubernetes.io/name=slurm-operator"
USER = f"system:serviceaccount:{NAMESPACE}:slurm-operator"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


@dataclass(frozen=True)
class Operator:
    """The operator's Deployment."""

    kubectl: Kubectl

    def pods(self) -> dict[str, Any]:
        """Pods by name."""
        pods = self.kubectl.get("pods", "--namespace", NAMESPACE, "--selector", SELECTOR) or []
        return {pod["metadata"]["name"]: pod for pod in pods}

    def leader(self) -> str:
        """Holder of the Lease; empty when nobody holds it."""
        lease = self.kubectl.get("lease", "slurm-operator", "--namespace", NAMESPACE) or {}
        return lease.get("spec", {}).get("holderIdentity") or ""

    def log(self, pod_name: str) -> str:
        """What a pod has logged."""
        return self.kubectl.run("logs", pod_name, "--namespace", NAMESPACE)

    def scale(self, replicas: int) -> None:
        """Set the number of replicas and wait until they are ready."""
        self.kubectl.run(
            "scale", "deployment", DEPLOYMENT, f"--replicas={replicas}", "--namespace", NAMESPACE
        )
        self.wait_ready(replicas)

    def wait_ready(self, replicas: int = 1) -> None:
        """Wait until so many pods are ready and no other is left."""

        def ready() -> bool:
            pods = self.pods().values()
            return len(pods) == replicas and all(
                status["ready"]
                for pod in pods
                for status in pod["status"].get("containerStatuses", [{"ready": False}])
            )

        wait_until(ready, within=60, what=f"{replicas} operator pods ready")

    def kill(self, pod_name: str) -> None:
        """SIGKILL every process of a pod, from the host, as an out-of-memory kill would."""
        uid = self.pods()[pod_name]["metadata"]["uid"]
        for process in processes_of(uid):
            os.kill(process, signal.SIGKILL)


def processes_of(pod_uid: str, word: bytes = b"coil") -> list[int]:
    """Processes on this host that have the word in their command line and belong to a pod."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if pod_uid in (folder / "cgroup").read_text() and word in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:  # the process ended while we looked
            continue
    return found


def requests(audit_log: Path, since: int) -> list[dict[str, Any]]:
    """The operator's requests in the audit log after a byte offset."""
    with audit_log.open() as log:
        log.seek(since)
        entries = [json.loads(line) for line in log if line.endswith("\n")]
    return [
        entry
        for entry in entries
        if entry["user"]["username"] == USER and entry["stage"] == "ResponseComplete"
    ]


def writes(audit_log: Path, since: int) -> list[str]:
    """What the operator wrote after a byte offset, leases left out."""
    return [
        f"{entry['verb']} {entry['requestURI']}"
        for entry in requests(audit_log, since)
        if entry["verb"] in WRITES and entry.get("objectRef", {}).get("resource") != "leases"
    ]
