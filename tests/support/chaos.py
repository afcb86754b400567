"""Trouble of every kind for a cluster at work, a stream of real jobs, and a witness who looks every second.

Three threads: one submits jobs, one looks at the workers through `kubectl proxy`, and the test makes trouble.
"""

import json
import os
import random
import re
import shlex
import signal
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from coil.api import keys
from lab import containerd, images, topology
from tests.support.kubectl import Kubectl, wait_until
from tests.support.operator import Operator, processes_of
from tests.support.slurm_cluster import WORKERS, SlurmCluster

MAX_UNAVAILABLE = 2
WANTED = 6
SETTINGS = "MinJobAge=86400"
"""slurmctld forgets no job while the test lasts."""
NEXT_IMAGE = "coil.local/slurmd:next"

_STRATEGY = f"updateStrategy: {{rollingUpdate: {{maxUnavailable: {MAX_UNAVAILABLE}}}}}\n"
_JOURNAL = """---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: journal, namespace: $name}
spec:
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 1Gi}}
"""
_CHANGES = {
    'slurmd: {image: "coil.local/slurmd:lab"}\n': (
        'slurmd: {image: "coil.local/slurmd:lab", volumeMounts: [{name: journal, mountPath: /journal}]}\n'
        "  template: {spec: {volumes: [{name: journal, persistentVolumeClaim: {claimName: journal}}]}}\n"
        f"  {_STRATEGY}"
    ),
    "configFileRefs: [{name: files}]\n": (f'configFileRefs: [{{name: files}}]\n  extraConf: "{SETTINGS}"\n'),
}
# Each job says when it begins and ends, so that one that ran twice tells of it itself.
_JOB = "echo $SLURM_JOB_ID begin >>/journal/jobs; sleep {seconds}; echo $SLURM_JOB_ID end >>/journal/jobs"


def create(cluster: SlurmCluster, replicas: int = WANTED) -> None:
    """Workers that share a folder, in a slurmctld that remembers all jobs."""
    text = cluster.manifests(replicas=replicas)
    for plain, changed in _CHANGES.items():
        assert plain in text
        text = text.replace(plain, changed)
    cluster.kubectl.apply(text + _JOURNAL.replace("$name", cluster.name))
    cluster.wait_idle(replicas, within=180)


def tag_next_image() -> None:
    """Give the workers' image a second name on every node: rolling to it is rolling to a new image."""
    for node in topology.recorded_nodes():
        command = containerd.of_node(node).client(
            "images", "tag", "--force", images.IMAGES["slurmd"].reference, NEXT_IMAGE
        )
        subprocess.run(command, check=True, capture_output=True)


@dataclass
class Backlog:
    """Keeps some jobs waiting, each of a random length and with a node of its own."""

    cluster: SlurmCluster
    random: random.Random
    seconds: tuple[int, int]
    waiting: int = 3

    @contextmanager
    def running(self) -> Iterator[None]:
        """Submit in a thread of its own."""
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(2):
            # While slurmctld is away nothing is submitted.
            self.cluster.try_slurm("sh", "-c", self._script())

    def _script(self) -> str:
        submit = "sbatch --exclusive --chdir=/tmp --output=/dev/null --wrap"
        jobs = [
            f"{submit} {shlex.quote(_JOB.format(seconds=self.random.randint(*self.seconds)))}"
            for _ in range(self.waiting)
        ]
        missing = f"$(({self.waiting} - $(squeue --noheader --states=PENDING | wc -l)))"
        return f"n={missing}; " + "; ".join(f"[ $n -gt {i} ] && {job}" for i, job in enumerate(jobs))


@dataclass
class Witness:
    """Counts every second which workers an update has taken out of service."""

    cluster: SlurmCluster
    samples: list[int] = field(default_factory=list[int])
    """Workers that were out for an update, each second."""
    missed: int = 0
    """Looks that a busy API server did not answer within ten seconds."""
    _out: set[str] = field(default_factory=set[str])

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look in a thread of its own."""
        stop = threading.Event()
        with _proxy(self.cluster.kubectl) as url:
            thread = threading.Thread(target=self._run, args=(stop, url))
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join()
        assert self.missed < len(self.samples) / 10, f"{self.missed} looks missed of {len(self.samples)}"

    def _run(self, stop: threading.Event, url: str) -> None:
        name = self.cluster.name
        pods = f"{url}/api/v1/namespaces/{name}/pods?labelSelector={WORKERS.replace('=', '%3D')}"
        nodeset = f"{url}/apis/slinky.slurm.net/v1beta1/namespaces/{name}/nodesets/cpu"
        while not stop.wait(1 - time.time() % 1):
            try:
                self._look(_fetch(pods)["items"], _fetch(nodeset)["spec"]["replicas"])
            except OSError:
                self.missed += 1

    def _look(self, pods: list[dict[str, Any]], replicas: int) -> None:
        found = {pod["metadata"]["name"]: pod for pod in pods}
        for name, pod in found.items():
            cause = pod["metadata"].get("annotations", {}).get(keys.ANNOTATION_POD_CORDON_CAUSE)
            if cause == "update" and (_is_drained(pod) or not _is_ready(pod)):
                self._out.add(name)
            elif cause == "scale-in" or (_is_ready(pod) and not _is_drained(pod)):
                self._out.discard(name)
        staying = sum("deletionTimestamp" not in pod["metadata"] for pod in pods)
        if staying >= replicas:
            # No successor is to come for those that are gone.
            self._out &= found.keys()
        # A successor that is not up yet may leave unmarked because of scaling: none is missing where enough
        # serve.
        serving = sum(_is_ready(pod) and not _is_drained(pod) for pod in found.values())
        self.samples.append(min(len(self._out), max(replicas - serving, 0)))
        if self.samples[-1] > MAX_UNAVAILABLE:
            shown = {name: _shown(pod) for name, pod in found.items()}
            print(f"out at once: {sorted(self._out)} of {replicas}: {shown}")  # noqa: T201 -- the log


def _is_drained(pod: dict[str, Any]) -> bool:
    """By the operator, as Slurm shows it; a mark alone is about to be taken off, or was just put on."""
    return any(
        each["type"] == "SlurmNodeStateDrain" and each.get("message", "").startswith("slurm-operator: ")
        for each in pod["status"].get("conditions", [])
    )


def _shown(pod: dict[str, Any]) -> str:
    return " ".join((*sorted(_conditions(pod)), *pod["metadata"].get("annotations", {}).values()))


def _conditions(pod: dict[str, Any]) -> set[str]:
    return {each["type"] for each in pod["status"].get("conditions", []) if each["status"] == "True"}


def _is_ready(pod: dict[str, Any]) -> bool:
    return "Ready" in _conditions(pod) and "deletionTimestamp" not in pod["metadata"]


@contextmanager
def _proxy(kubectl: Kubectl) -> Iterator[str]:
    command = [kubectl.binary, "--kubeconfig", kubectl.kubeconfig, "proxy", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        try:
            yield f"http://{address}"
        finally:
            process.terminate()


def _fetch(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 -- kubectl's own address
        return json.load(answer)


@dataclass
class Trouble:
    """What is done to a cluster, each step told as it is done."""

    cluster: SlurmCluster
    random: random.Random
    began: float = field(default_factory=time.monotonic)
    done: Counter[str] = field(default_factory=Counter[str])
    _image: int = 0

    @property
    def kinds(self) -> dict[str, Callable[[], str]]:
        """Name and deed of every kind of trouble; a deed tells its detail."""
        return {
            "scale": self.scale,
            "roll": self.roll,
            "configure": self.configure,
            "kill operator": self.kill_operator,
            "kill slurmrestd": lambda: self._end("slurmrestd", killed=True),
            # Killed without a farewell slurmctld loses what happened since it last wrote its state: it starts
            # a job again that it has just started, and does not believe the end of one that has just ended.
            "end slurmctld": lambda: self._end("slurmctld", killed=False),
        }

    def make(self, seconds: float, pause: tuple[float, float]) -> None:
        """Every kind in random order, again and again, with pauses, for so long."""
        while time.monotonic() < self.began + seconds:
            kinds = list(self.kinds)
            self.random.shuffle(kinds)
            for kind in kinds:
                if time.monotonic() > self.began + seconds:
                    return
                self._do(kind)
                time.sleep(self.random.uniform(*pause))

    def _do(self, kind: str) -> None:
        detail = self.kinds[kind]()
        self.done[kind] += 1
        print(f"{time.monotonic() - self.began:6.1f} s  {kind} {detail}", flush=True)  # noqa: T201 -- the log of the run

    def scale(self) -> str:
        """Another number of workers."""
        replicas = self.random.randint(3, 8)
        self.cluster.scale(replicas)
        return f"to {replicas}"

    def roll(self) -> str:
        """The other image."""
        self._image = 1 - self._image
        image = (images.IMAGES["slurmd"].reference, NEXT_IMAGE)[self._image]
        set_image(self.cluster, image)
        return f"to {image}"

    def configure(self) -> str:
        """A parameter that Slurm takes while it runs."""
        wait = self.random.randint(31, 99)
        spec = {"extraConf": f"{SETTINGS}\nKillWait={wait}"}
        _patch(self.cluster, "controller.slinky.slurm.net", self.cluster.name, spec)
        return f"KillWait={wait}"

    def kill_operator(self) -> str:
        """Without a farewell; the pod is replaced, as the kubelet would wait longer after each death."""
        operator = Operator(self.cluster.kubectl)
        pods = operator.pods()
        for pod in pods:
            operator.kill(pod)
        self.cluster.kubectl.run("delete", "pod", *pods, "--namespace", "slinky", "--wait=false")
        return ", ".join(pods)

    def _end(self, program: str, *, killed: bool) -> str:
        selector = f"app.kubernetes.io/name={program}"
        name = self.cluster.name
        pods = self.cluster.kubectl.get("pods", "--namespace", name, "--selector", selector) or []
        for pod in pods if killed else ():
            for process in processes_of(pod["metadata"]["uid"], program.encode()):
                os.kill(process, signal.SIGKILL)
        names = [pod["metadata"]["name"] for pod in pods]
        if names:
            self.cluster.kubectl.run("delete", "pod", *names, "--namespace", name, "--wait=false")
        return ", ".join(names)


def set_image(cluster: SlurmCluster, image: str) -> None:
    """Another image for all workers."""
    _patch(cluster, "nodeset", "cpu", {"slurmd": {"image": image}})


def _patch(cluster: SlurmCluster, kind: str, name: str, spec: dict[str, Any]) -> None:
    patch = json.dumps({"spec": spec})
    cluster.kubectl.run("patch", kind, name, "--type=merge", "-p", patch, "--namespace", cluster.name)


def describe(cluster: SlurmCluster) -> str:
    """What is left to do, for a person who looks for the cause."""
    script = "squeue; scontrol show node --oneliner; scontrol show job --oneliner | grep -v =COMPLETED"
    pods = cluster.kubectl.run("get", "pods,nodesets", "--namespace", cluster.name, "--output", "wide")
    told = cluster.condition("nodeset", "cpu", "Reconciled")
    return f"{cluster.try_slurm('sh', '-c', script)}\n{pods}\n{told}"


def job_records(cluster: SlurmCluster) -> dict[str, dict[str, str]]:
    """Every job that slurmctld remembers, by its number."""
    text = wait_until(
        lambda: cluster.try_slurm("scontrol", "show", "job", "--oneliner"), within=60, what="job records"
    )
    records = (dict(re.findall(r"(\w+)=(\S*)", line)) for line in text.splitlines())
    return {record["JobId"]: record for record in records}


def journal(cluster: SlurmCluster) -> Counter[str]:
    """How often each job said that it began, and that it ended: `17 begin`."""
    worker = next(iter(cluster.workers()))
    text = cluster.kubectl.exec(cluster.name, worker, "slurmd", "cat", "/journal/jobs")
    return Counter(text.splitlines())
