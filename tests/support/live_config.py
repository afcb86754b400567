"""Changes of a running cluster's configuration, timed from the patch until each side shows them."""

import json
import re
import statistics
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster

KIND = "controller.slinky.slurm.net"
_SHOWN = "scontrol show config 2>/dev/null | grep -Eq '^{key} *= {value} *$'"
_FETCHED = "grep -qx '{key}={value}' /run/slurm/conf/slurm.conf"
_LOOP = """echo watching
until {check}; do
    [ $SECONDS -lt 60 ] || exit 1
    sleep 0.1
done
echo there"""
_RECONFIGURED = "Processing Reconfiguration Request"
"""In the log of slurmctld, once for each."""


@dataclass(frozen=True)
class Timing:
    """Seconds from a patch of the Controller until a side shows the change."""

    controller: float
    workers: Sequence[float]

    @property
    def everywhere(self) -> float:
        """The last slurmd."""
        return max(self.workers)

    def __str__(self) -> str:
        workers = ", ".join(f"{seconds:.1f}" for seconds in self.workers)
        return f"slurmctld after {self.controller:.1f} s; slurmds after {workers} s"


class Watch:
    """A loop in a container that ends as soon as a condition holds there, so nothing is begun to look."""

    def __init__(self, cluster: SlurmCluster, pod: str, container: str, check: str) -> None:
        kubectl = cluster.kubectl
        command = [kubectl.binary, "--kubeconfig", kubectl.kubeconfig, "exec", "--namespace", cluster.name]
        self.what = f"{pod}: {check}"
        self._process = subprocess.Popen(
            [*command, pod, "--container", container, "--", "bash", "-c", _LOOP.format(check=check)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._expect("watching")

    def ended(self) -> float:
        """Wait for the end; when it was, on the monotonic clock."""
        self._expect("there")
        return time.monotonic()

    def close(self) -> None:
        """Leave nothing behind."""
        self._process.kill()
        self._process.communicate()

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if line != word:
            raise AssertionError(f"{line!r} instead of {word!r} from {self.what}")


def timed_change(cluster: SlurmCluster, key: str, value: int) -> Timing:
    """Set a parameter in extraConf; when slurmctld and each slurmd's side show it.

    The side of a slurmd: it has fetched the file, and `scontrol show config` says the same in its pod.
    """
    shown, fetched = (text.format(key=key, value=value) for text in (_SHOWN, _FETCHED))
    places = [(f"{cluster.name}-controller-0", "slurmctld", shown)]
    places += [(pod, "slurmd", f"{fetched} && {shown}") for pod in sorted(cluster.workers())]
    with ExitStack() as stack, ThreadPoolExecutor(len(places)) as pool:
        watches = [each.result() for each in [pool.submit(Watch, cluster, *place) for place in places]]
        for watch in watches:
            stack.callback(watch.close)
        since = time.monotonic()
        change(cluster, {"extraConf": f"{key}={value}"})
        controller, *workers = [moment - since for moment in pool.map(Watch.ended, watches)]
    return Timing(controller, workers)


def reconfigures(cluster: SlurmCluster) -> int:
    """How often slurmctld was told to read its configuration anew, by its own log."""
    log = cluster.kubectl.run(
        "logs", f"{cluster.name}-controller-0", "--namespace", cluster.name, "--container", "logfile"
    )
    return log.count(_RECONFIGURED)


def figures(seconds: Sequence[float]) -> str:
    """Median and worst."""
    return f"{statistics.median(seconds):.1f} s, {max(seconds):.1f} s"


def runs(cluster: SlurmCluster) -> dict[str, Any]:
    """Every pod of the cluster with how often its containers were started."""
    pods = cluster.kubectl.get("pods", "--namespace", cluster.name)
    return {
        pod["metadata"]["uid"]: [
            status["restartCount"] for status in pod["status"].get("containerStatuses", [])
        ]
        for pod in pods
    }


def change(cluster: SlurmCluster, spec: dict[str, Any]) -> None:
    """Patch the Controller."""
    patch = json.dumps({"spec": spec})
    cluster.kubectl.run(
        "patch", KIND, cluster.name, "--namespace", cluster.name, "--type=merge", "--patch", patch
    )


def setting(cluster: SlurmCluster, name: str) -> str:
    """A parameter as slurmctld has it."""
    found = re.search(rf"^{name}\s*= (.*)$", cluster.try_slurm("scontrol", "show", "config"), re.MULTILINE)
    return found[1].strip() if found else ""


def wait_live(cluster: SlurmCluster, nodes: int = 2) -> str:
    """Wait until the condition says that all have the wanted configuration; its message."""

    def told() -> str:
        said = cluster.condition(KIND, cluster.name, "ConfigurationLive")
        message = said.get("message", "")
        return message if message.endswith(f"on slurmctld and {nodes} of {nodes} nodes") else ""

    return wait_until(told, within=60, what="ConfigurationLive on all nodes")
