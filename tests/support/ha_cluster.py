"""A Slurm cluster whose slurmctld has backups, or a claim of its own, and the faults that befall it."""

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab import network, topology
from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

CONTROL = "control"
ACTIVE = "controller.slinky.slurm.net/active"
SLURMCTLDS = "app.kubernetes.io/name=slurmctld"
_TAINT = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}


@dataclass(frozen=True)
class HaCluster(SlurmCluster):
    """Workers and slurmrestd are on the lab's control node, slurmctld is on the others.

    Attributes:
        backups: of slurmctld; the third slurmctld of the lab shares the control node.
        extra_conf: added to slurm.conf.
    """

    backups: int = 1
    extra_conf: str = ""

    @contextlib.contextmanager
    def running(self, *, workers: int) -> Iterator["HaCluster"]:
        """Create it, wait until its workers and all its slurmctlds are ready, and remove it at the end."""
        try:
            self.create(replicas=workers)
            self.wait_idle(workers)
            self.wait_ready()
            yield self
        finally:
            self.delete()

    def manifests(self, *, replicas: int) -> str:
        """The whole cluster as YAML."""
        documents = [self._changed(each) for each in yaml.safe_load_all(super().manifests(replicas=replicas))]
        if self.backups:
            documents.append(self._claim())
        return yaml.safe_dump_all(documents)

    def _changed(self, document: Any) -> Any:
        spec: dict[str, Any] = document.get("spec", {})
        on_control = {"nodeSelector": {"kubernetes.io/hostname": CONTROL}, "tolerations": [_TAINT]}
        match document["kind"]:
            case "NodeSet":
                spec["template"] = {"spec": on_control}
                spec["partition"]["config"] += " OverSubscribe=FORCE:16"
            case "RestApi":
                spec["template"] = {"spec": on_control}
            case "Controller":
                spec["extraConf"] = self.extra_conf
                if self.backups:
                    spec["ha"] = {"enabled": True, "backups": self.backups}
                    spec["persistence"] = {"enabled": True, "existingClaim": "state"}
                if self.backups > 1:
                    spec["template"] = {"spec": {"tolerations": [_TAINT]}}
            case _:
                pass
        return document

    def _claim(self) -> Any:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "state", "namespace": self.name},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
        }

    def slurm(self, *command: str, within: float = 60) -> str:
        """Run a Slurm command on a worker, as clients do: through the Service."""
        return self.kubectl.exec(self.name, "cpu-0", "slurmd", *command, within=within)

    def controllers(self) -> dict[str, Any]:
        """The slurmctld pods by name."""
        pods = self.kubectl.get("pods", "--namespace", self.name, "--selector", SLURMCTLDS) or []
        return {pod["metadata"]["name"]: pod for pod in pods}

    def labelled(self) -> list[str]:
        """Names of the pods that the Service selects."""
        return [name for name, pod in self.controllers().items() if pod["metadata"]["labels"].get(ACTIVE)]

    def wait_ready(self, *, within: float = 120) -> None:
        """Wait until all slurmctlds are ready and one is labelled."""

        def ready() -> bool:
            pods = self.controllers().values()
            states = [_is_ready(pod) for pod in pods]
            return states == [True] * (1 + self.backups) and len(self.labelled()) == 1

        wait_until(ready, within=within, what=f"{1 + self.backups} slurmctlds in {self.name}")

    def is_ready(self, pod: str) -> bool:
        """Whether this pod is ready."""
        found = self.controllers().get(pod)
        return found is not None and _is_ready(found)

    def node_of(self, pod: str) -> topology.Node:
        """The lab node on which a pod is."""
        name = self.controllers()[pod]["spec"]["nodeName"]
        return next(node for node in topology.recorded_nodes() if node.name == name)

    def signal(self, pod: str, number: signal.Signals) -> None:
        """Send a signal to the slurmctld of a pod, from the host."""
        uid = self.controllers()[pod]["metadata"]["uid"]
        for process in _daemons(uid):
            os.kill(process, number)

    def resume_drained(self) -> list[str]:
        """Resume the nodes that Slurm itself drained, and tell which these were."""
        found = [name for name, state in self.nodes().items() if state in ("draining", "drained")]
        if found:
            self.slurm("scontrol", "update", f"nodename={','.join(found)}", "state=resume")
        return found

    def said_before(self, pod: str) -> str:
        """What the container of slurmctld wrote before it was started again."""
        names = ("--namespace", self.name, pod, "--container", "slurmctld")
        return self.kubectl.run("logs", "--previous", *names)

    def delete_pod(self, pod: str) -> None:
        """Delete a pod as a drain or a person does, without waiting."""
        self.kubectl.run("delete", "pod", pod, "--namespace", self.name, "--wait=false")

    def renew_restarted(self) -> None:
        """Replace pods whose slurmctld was restarted: the kubelet delays each further restart."""
        for name, pod in self.controllers().items():
            statuses = pod["status"].get("containerStatuses", [])
            if any(status["restartCount"] for status in statuses):
                self.wait_ready()
                self.delete_pod(name)
                uid = pod["metadata"]["uid"]
                wait_until(lambda: self._uid(name) not in ("", uid), within=60, what="a new pod")  # noqa: B023

    def _uid(self, pod: str) -> str:
        found = self.controllers().get(pod)
        return found["metadata"]["uid"] if found else ""

    @contextlib.contextmanager
    def cut_off(self, pod: str) -> Iterator[None]:
        """The pod's node has no network and stands still, and goes on afterwards as if nothing had been.

        The lab's nodes share a folder of the host where real ones share a network file system, which a
        node that is cut off cannot reach. So all processes of the pod are stopped meanwhile. Nobody fences
        the node: its slurmctld comes back with its old state in memory.
        """
        node, processes = self.node_of(pod), list(_processes(self._uid(pod)))
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        network.cut(node)
        try:
            yield
        finally:
            network.mend(node)
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)


def _is_ready(pod: Any) -> bool:
    conditions = pod["status"].get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def _daemons(pod_uid: str) -> Iterator[int]:
    """Processes on this host that run slurmctld itself and belong to a pod."""
    for process in _processes(pod_uid):
        with contextlib.suppress(OSError):  # it ended while we looked
            program = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]
            if program.endswith(b"slurmctld"):
                yield process


def _processes(pod_uid: str) -> Iterator[int]:
    """Processes on this host that belong to a pod, slurmctld before its init."""
    numbers = (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit())
    for process in sorted(numbers, reverse=True):
        with contextlib.suppress(OSError):
            if pod_uid in Path(f"/proc/{process}/cgroup").read_text():
                yield process
