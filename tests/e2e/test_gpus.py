"""GPUs that a device plugin hands out: jobs get their own, and DCGM Exporter learns whose they are."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import binaries, namespaces, topology
from lab.cluster import KUBECONFIG
from lab.install import CHARTS, SLURM
from tests.support.kubectl import Kubectl, wait_until
from tests.support.slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

VALUES = Path(__file__).parents[1] / "data" / "e2e" / "gpus.yaml"
FOLDER = "/var/lib/coil-stand-in-jobs"
# One line for each file; a second one for a file that ends in a newline.
SHOW = (
    f'cd {FOLDER}/* && for gpu in [0-9]*; do [ -e "$gpu" ] && printf %s= "$gpu" && cat "$gpu" && echo; done'
)


@pytest.fixture
def devices(kubectl: Kubectl) -> Iterator[None]:
    """Six devices `nvidia.com/gpu` on one node, as long as the test runs."""
    binaries.ensure("deviceplugin")
    node = topology.recorded_nodes()[-1]
    program = [str(binaries.binary("deviceplugin")), "nvidia.com/gpu", "6", "/var/lib/coil-stand-in-gpus"]
    plugin = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *namespaces.enter(node), *program])
    try:
        wait_until(
            lambda: kubectl.get("node", node.name)["status"]["allocatable"].get("nvidia.com/gpu") == "6",
            within=30,
            what="the kubelet offers six devices",
        )
        yield
    finally:
        plugin.terminate()
        plugin.wait()


def install(name: str) -> None:
    """A cluster of the chart."""
    command = [str(binaries.binary("helm")), "install", name, str(CHARTS / "slurm"), "--namespace", name]
    command += ["--create-namespace", f"--kubeconfig={KUBECONFIG}", f"--set=fullnameOverride={name}"]
    command += [f"--set=vendor.nvidia.dcgm.jobMappingDir={FOLDER}/{name}"]
    command += [f"--values={file}" for file in (*SLURM.values, VALUES)]
    subprocess.run(command, capture_output=True, timeout=120, check=True)


def on_worker(cluster: SlurmCluster, script: str) -> str:
    return cluster.kubectl.exec(
        cluster.name, f"{cluster.name}-worker-gpu-0", "slurmd", "sh", "-c", f"{script}; true"
    )


def wait_mapping(cluster: SlurmCluster, wanted: dict[int, str]) -> None:
    """Wait until the exporter reads these job ids, by GPU."""
    lines = "".join(f"{gpu}={job}\n" for gpu, job in wanted.items())
    wait_until(lambda: on_worker(cluster, SHOW) == lines, within=30, what=f"the notes are {lines!r}")


def tasks(cluster: SlurmCluster, array: int) -> list[str] | None:
    """The ids of an array's two tasks, once both run: Slurm gives each an id of its own."""
    running = cluster.slurm("squeue", f"--job={array}", "--noheader", "--states=running", "--format=%K %A")
    lines = sorted(line.split() for line in running.splitlines())
    return [job for _, job in lines] if len(lines) == 2 else None


def lose_worker(cluster: SlurmCluster) -> None:
    """Take the pod away without a farewell, as the loss of its machine does; no epilog runs."""
    (name, pod), *_ = cluster.workers().items()
    cluster.kubectl.run("delete", "pod", name, "--namespace", cluster.name, "--grace-period=0", "--force")
    wait_until(
        lambda: cluster.workers().get(name, pod)["metadata"]["uid"] != pod["metadata"]["uid"],
        within=30,
        what="a new worker",
    )


@pytest.mark.usefixtures("devices")
def test_a_job_has_its_own_gpus_and_is_noted_for_the_exporter_while_it_runs(
    new_cluster: Callable[[], SlurmCluster],
) -> None:
    cluster = new_cluster()
    install(cluster.name)
    cluster.wait_idle(1)
    assert on_worker(cluster, "ls /dev/nvidia*").split() == [f"/dev/nvidia{number}" for number in range(4)]
    assert cluster.slurm("srun", "--gres=gpu:2", "printenv", "CUDA_VISIBLE_DEVICES") == "0,1\n"
    wait_mapping(cluster, {})

    array = cluster.submit("sleep 300", "--array=0-1", "--gres=gpu:2", "--mem=16", "--requeue")
    first, second = wait_until(lambda: tasks(cluster, array), within=60, what="both tasks run")
    wait_mapping(cluster, {0: first, 1: first, 2: second, 3: second})
    cluster.slurm("scancel", f"{array}_0")
    wait_mapping(cluster, {2: second, 3: second})

    cluster.slurm("scontrol", "requeue", f"{array}_1")
    wait_mapping(cluster, {})
    held = ("squeue", f"--job={array}_1", "--noheader", "--format=%T %r")
    wait_until(lambda: "PENDING BeginTime" in cluster.slurm(*held), within=30, what="it waits")
    cluster.slurm("scontrol", "update", f"jobid={array}_1", "StartTime=now")
    wait_mapping(cluster, {0: second, 1: second})

    lose_worker(cluster)
    cluster.wait_idle(1)
    wait_mapping(cluster, {})
