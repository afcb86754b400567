"""The rehearsal's script with a real slurmctld: what it takes, what it refuses, and with which words."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from coil.build import scripts
from coil.build.isolated import isolated
from coil.kinds.controller.rehearsal import refusal
from tests.support import slurm

pytestmark = pytest.mark.slurm

FOLDER = "/var/log/slurm"
ACCOUNTS = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=192.0.2.1\n"


@pytest.fixture
def stage() -> Iterator[slurm.SlurmCluster]:
    """Files and namespaces of a cluster of which nothing runs."""
    if reason := slurm.missing():
        pytest.skip(reason)
    state = Path(tempfile.mkdtemp(prefix="coil-slurm-"))
    state.chmod(0o755)
    yield slurm.SlurmCluster(state)
    shutil.rmtree(state)


def rehearse(stage: slurm.SlurmCluster, files: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and reasons for slurm.conf with more lines and other files."""
    etc, log = stage.state / "etc", stage.state / "log"
    base = (etc / "slurm.conf").read_text()
    whole = {**files, "slurm.conf": base + files["slurm.conf"], "cgroup.conf": "CgroupPlugin=disabled\n"}
    (log / "candidate").mkdir()
    for name, text in isolated(whole).items():
        (log / "candidate" / name).write_text(text)
        (log / "candidate" / name).chmod(0o644)
        (etc / name).unlink(missing_ok=True)
    scratch = stage.state / "scratch"
    scratch.mkdir()
    settings = (
        f"CANDIDATE_DIR={FOLDER}/candidate",
        f"MESSAGE_FILE={FOLDER}/said",
        "LIMIT_S=10",
    )
    with (stage.state / "out").open("wb") as out:
        command = (*settings, *slurm.as_user(slurm.SLURM), "sh", "-c", scripts.REHEARSE)
        process = stage.enter("ctl", scratch, *command, output=out)
        code = process.wait(timeout=30)
    os.sync()
    return code, refusal((log / "said").read_text(), whole)


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "SlurmctldHost=other(192.0.2.7)\n",
        f"{ACCOUNTS}AccountingStorageEnforce=associations,limits,qos\nPartitionName=q Nodes=ALL QOS=high\n",
        (
            f"{ACCOUNTS}GresTypes=gpu\nAccountingStorageTRES=gres/gpu\n"
            "PartitionName=q Nodes=ALL TRESBillingWeights=CPU=1,GRES/gpu=2\n"
            "PriorityType=priority/multifactor\nPriorityWeightTRES=GRES/gpu=2\n"
        ),
        (
            "NodeName=old[1-3] NodeAddr=192.0.2.[1-3] CPUs=2\nNodeName=nowhere CPUs=1\n"
            "PartitionName=q Nodes=old[1-3],nowhere\n"
        ),
        "NodeName=c1 State=CLOUD\nSuspendProgram=/bin/off\nResumeProgram=/bin/on\nSuspendTime=60\n",
        "SlurmctldPrimaryOnProg=/bin/false\n",
        "JobCompType=jobcomp/filetxt\nJobCompLoc=/nowhere/x\n",
    ],
    ids=["plain", "backup", "qos", "tres", "old-nodes", "cloud", "program", "jobcomp"],
)
def test_what_a_running_cluster_may_have_is_accepted(stage: slurm.SlurmCluster, lines: str) -> None:
    assert rehearse(stage, {"slurm.conf": lines})[0] == 0, (stage.state / "out").read_text()


@pytest.mark.parametrize(
    ("lines", "others", "words"),
    [
        ("MaxJobCoont=5\n", {}, "unrecognized key: MaxJobCoont"),
        ("MaxJobCount=foo\n", {}, "MaxJobCount=foo)"),
        ("PartitionName=q Nodes=cpu MaxTme=7\n", {}, "PartitionName=q Nodes=cpu MaxTme=7)"),
        ("PartitionName=q Nodes=nope[1-2]\n", {}, "Invalid node names in partition q"),
        ("PartitionName=main Nodes=ALL\n", {}, "duplicate entry for partition main"),
        (
            "TopologyPlugin=topology/tree\n",
            {"topology.conf": "SwichName=s1\n"},
            "(topology.conf line 1: SwichName=s1)",
        ),
        ("JobSubmitPlugins=lua\n", {"job_submit.lua": "function nope(\n"}, "job_submit.lua:2:"),
        ("PartitionName=q Nodes=ALL QOS=high\n", {}, "invalid qos (high)"),
    ],
    ids=["key", "value", "partition-key", "nodes", "twice", "topology", "lua", "qos-without-accounts"],
)
def test_what_would_end_slurmctld_is_refused_with_its_words(
    stage: slurm.SlurmCluster, lines: str, others: dict[str, str], words: str
) -> None:
    code, said = rehearse(stage, {"slurm.conf": lines, **others})
    assert code == 1, (stage.state / "out").read_text()
    assert words in said
