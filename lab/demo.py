"""What ends `make up`: real jobs on the cluster, their output, and how to go on."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console

from lab.install import Cluster

T = TypeVar("T")
NAMESPACE = "slurm"
CONTROLLER = "slurm-controller-0"
OUTPUT = "/tmp/demo-%j.out"  # noqa: S108  inside a worker pod
RECORD = "JobID,JobName,User,Partition,NodeList,State,ExitCode,Start,Elapsed"
FINISHED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}
BATCH = 'echo "job $SLURM_JOB_ID on $SLURM_JOB_NODELIST"; srun --label hostname'


class DemoError(Exception):
    """The demo did not get its result; the text says what was awaited and what was seen."""


@dataclass(frozen=True)
class Demo:
    """Runs commands in the cluster and shows them as a person would have typed them."""

    cluster: Cluster
    console: Console
    accounting: bool = False
    """The cluster has a slurmdbd: show what it recorded."""

    def run(self, workers: int = 2) -> None:
        """Show the cluster at work; raise DemoError when something does not come within its time."""
        self.wait(
            lambda: self.settled() and self.idle() >= workers, within=180, what=f"{workers} idle workers"
        )
        self.show("sinfo")
        self.show("srun", f"--nodes={workers}", "--chdir=/tmp", "hostname")
        job = self.batch(workers)
        if self.accounting:
            self.wait(lambda: self.recorded(job), within=120, what=f"job {job} in the accounting database")
            self.show("sacct", "--allusers", "--allocations", f"--format={RECORD}")
        self.console.print("\n[bold]$ kubectl get nodesets,controllers,pods --output wide[/]")
        self.console.print(
            self.kubectl("get", "nodesets,controllers,pods", "--output", "wide"), highlight=False
        )
        self.console.print(how_to_go_on(self.cluster), highlight=False)

    def batch(self, workers: int) -> str:
        """A batch job, and its output file from the worker that wrote it; the job's number."""
        options = ["--parsable", f"--nodes={workers}", "--chdir=/tmp", f"--output={OUTPUT}"]
        job = self.show("sbatch", *options, "--wrap", BATCH).strip()
        record = self.wait(lambda: self.finished(job), within=60, what=f"job {job} to end")
        if record["job_state"] != ["COMPLETED"]:
            raise DemoError(f"job {job} ended {record['job_state']}: {record.get('state_reason')}")
        host, file = str(record["batch_host"]), OUTPUT.replace("%j", job)
        self.console.print(f"\n[bold]$ cat {file}[/]  (on {host})", highlight=False)
        self.console.print(self.execute(self.pod_of(host), "slurmd", "cat", file), highlight=False, end="")
        return job

    def recorded(self, job: str) -> bool:
        """Whether the database knows how a job ended; False as well while slurmdbd does not answer."""
        try:
            state = self.slurm("sacct", "--noheader", "--allocations", f"--jobs={job}", "--format=State")
        except DemoError:
            return False
        return state.split() == ["COMPLETED"]

    def show(self, *command: str) -> str:
        """Print and run a Slurm command where slurmctld runs; its output."""
        self.console.print(f"\n[bold]$ {shlex.join(command)}[/]", highlight=False)
        output = self.slurm(*command)
        self.console.print(output, highlight=False, end="")
        return output

    def slurm(self, *command: str) -> str:
        """Run a Slurm command where slurmctld runs."""
        return self.execute(CONTROLLER, "slurmctld", *command)

    def settled(self) -> bool:
        """Whether slurmctld runs with the configuration just installed: it is not about to be replaced."""
        found = json.loads(self.kubectl("get", "controller", NAMESPACE, "--output", "json"))
        conditions = found.get("status", {}).get("conditions", [])
        good = {
            each["type"]
            for each in conditions
            if each["status"] == "True" and each["observedGeneration"] == found["metadata"]["generation"]
        }
        return {"Reconciled", "Available"} <= good

    def idle(self) -> int:
        """How many Slurm nodes are idle and answer slurmctld; 0 while slurmctld itself does not answer."""
        columns = ("--noheader", "--Node", "--states=idle", "--responding", "--format=%N")
        try:
            return len(self.slurm("sinfo", *columns).split())
        except DemoError:
            return 0

    def finished(self, job: str) -> dict[str, list[str] | str] | None:
        """The record of a job that has ended, its epilog as well."""
        [record] = json.loads(self.slurm("scontrol", "show", "job", job, "--json"))["jobs"]
        state = set(record["job_state"])
        return record if FINISHED & state and "COMPLETING" not in state else None

    def pod_of(self, slurm_node: str) -> str:
        """Name of the worker pod behind a Slurm node."""
        label = f"nodeset.slinky.slurm.net/pod-hostname={slurm_node}"
        return self.kubectl("get", "pods", "--selector", label, "--output", "name").strip()

    def execute(self, pod: str, container: str, *command: str) -> str:
        """Run a command in a container."""
        return self.kubectl("exec", pod, "--container", container, "--", *command)

    def kubectl(self, *args: str) -> str:
        """Run kubectl in the cluster's namespace."""
        command = [
            str(self.cluster.kubectl),
            "--kubeconfig",
            str(self.cluster.kubeconfig),
            "--namespace",
            NAMESPACE,
            *args,
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        except subprocess.TimeoutExpired as error:
            raise DemoError(f"kubectl {shlex.join(args)}: no end within {error.timeout:g} s") from error
        if done.returncode != 0:
            raise DemoError(f"kubectl {shlex.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def wait(self, check: Callable[[], T | None], *, within: float, what: str) -> T:
        """Poll until `check` returns something true."""
        end = time.monotonic() + within
        while not (answer := check()):
            if time.monotonic() > end:
                pods = self.kubectl("get", "pods", "--output", "wide")
                raise DemoError(f"waited {within:g} s for {what}; the pods are:\n{pods}")
            time.sleep(0.5)
        return answer


def how_to_go_on(cluster: Cluster) -> str:
    """Commands a person tries next."""
    return f"""
How to go on (kubectl is {cluster.kubectl}):
  export KUBECONFIG={cluster.kubeconfig}
  kubectl -n {NAMESPACE} get nodesets,pods
  kubectl -n {NAMESPACE} exec -it {CONTROLLER} -c slurmctld -- bash  # then sinfo, squeue, sbatch ...
  kubectl -n {NAMESPACE} scale nodeset slurm-worker-cpu --replicas=1
  kubectl -n {NAMESPACE} describe nodeset slurm-worker-cpu           # conditions and events
  make down                                                    # remove everything"""
