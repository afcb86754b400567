"""Configuration that coil renders, read by the real daemons."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coil.build.accounting import slurmdbd_conf
from coil.build.slurmconf import ConfigInputs, config_files
from tests.support import slurm
from tests.support.resources import accounting, controller, nodeset

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[slurm.SlurmCluster]:
    """Folders for a cluster whose daemons the test starts with its own configuration."""
    with tempfile.TemporaryDirectory(prefix="coil-slurm-", dir=tmp_path.parents[1]) as folder:
        state = Path(folder)
        state.chmod(0o755)
        made = slurm.SlurmCluster(state)
        yield made
        made.stop()


def _configure(cluster: slurm.SlurmCluster, files: dict[str, str]) -> None:
    """Put the files in place; only addresses, ports and folders are those of this test."""
    text = files["slurm.conf"]
    own = {
        "SlurmctldHost": "ctl(127.0.0.1)",
        "SlurmctldAddr": "127.0.0.1",
        "SlurmctldPort": cluster.ports["ctld"],
        "SlurmdPort": cluster.ports["slurmd"],
        "StateSaveLocation": "/var/spool/slurmctld",
    }
    for key, value in own.items():
        text = re.sub(rf"^{key}=.*$", f"{key}={value}", text, flags=re.MULTILINE)
    for name, content in (files | {"slurm.conf": text}).items():
        (cluster.state / "etc" / name).write_text(content)


def test_rendered_configuration_is_taken(cluster: slurm.SlurmCluster) -> None:
    """Also with NodeSets that had to be left out, and options merged with the user's."""
    found = [
        nodeset("good", partition={"enabled": True, "config": "State=UP Default=YES MaxTime=60"}),
        nodeset("plain", partition={"enabled": True}),
        nodeset("twin", partition={"enabled": True}, template={"spec": {"hostname": "plain-"}}),
        nodeset("bad", partition={"enabled": True, "config": "State=UP\nPrologSlurmctld=/tmp/own.sh"}),
    ]
    wanted = controller(
        extraConf="SlurmctldParameters=idle_on_node_suspend\nCommunicationParameters=NoCtldInAddrAny\n",
        metrics={"enabled": True},
    )
    _configure(cluster, config_files(wanted, ConfigInputs(nodesets=found)))
    cluster.start_ctld()
    shown = cluster.run("scontrol", "show", "config")
    options = "enable_configless,idle_on_node_suspend,reconfig_on_restart"
    assert re.search(rf"^SlurmctldParameters\s*= {options}$", shown, re.MULTILINE)
    assert "own.sh" not in shown
    assert sorted(cluster.run("sinfo", "--noheader", "--format=%R").split()) == ["good", "plain"]


def test_jobs_run_without_cgroups(cluster: slurm.SlurmCluster) -> None:
    """Field cases CFG-03 and CFG-04: `CgroupPlugin=disabled` alone is enough."""
    site = {"cgroup.conf": "# CgroupPlugin=cgroup/v2\nCgroupPlugin=disabled\n"}
    wanted = controller(
        configFileRefs=[{"name": "site"}], extraConf="CommunicationParameters=NoCtldInAddrAny\n"
    )
    files = config_files(
        wanted,
        ConfigInputs(
            config_maps={"site": site},
            nodesets=[nodeset("all", partition={"enabled": True, "config": "Default=YES"})],
        ),
    )
    _configure(cluster, {**files, **site})
    cluster.start_ctld()
    conf = "RealMemory=1000 CPUs=2 Features=all"
    worker = slurm.Daemon(cluster, "w1", "slurmd", "-D", "-Z", "-N", "w1", "--conf", conf)
    cluster.workers.append(worker)
    slurm.wait_until(lambda: "NodeName=w1 " in cluster.run("scontrol", "-o", "show", "node"), 20, "w1")
    assert cluster.run("srun", "--immediate=20", "hostname").split() == ["w1"]


@pytest.mark.parametrize(
    "text",
    ["plain", "p#ss word=1", "a\\b", "\\", "a\\#b", 'a"b', "a'b; $c %d", '"a', " x "],
)
def test_slurmdbd_reads_every_character(cluster: slurm.SlurmCluster, text: str) -> None:
    """Q9 and its class. slurmdbd shows the database's name, which is written as the password is."""
    storage = {
        "host": "nohost.invalid",
        "username": "u",
        "database": text,
        "passwordKeyRef": {"name": "db", "key": "pw"},
    }
    conf = slurmdbd_conf(accounting(storageConfig=storage), text.encode())
    conf = re.sub(r"^DbdHost=.*$", "DbdHost=localhost", conf, flags=re.MULTILINE)
    path = cluster.state / "etc" / "slurmdbd.conf"
    path.write_text(conf)
    path.chmod(0o600)
    os.chown(path, slurm.SLURM, slurm.SLURM)
    run = cluster.state / "run" / "slurmdbd"
    run.mkdir()
    os.chown(run, slurm.SLURM, slurm.SLURM)
    scratch = cluster.state / "scratch-dbd"
    scratch.mkdir()
    process = cluster.enter("dbd", scratch, "slurmdbd", "-D", "-vvvvv", output=subprocess.PIPE)
    try:
        assert process.stdout
        for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip("\n")
            assert "fatal" not in line, line
            if "called for db " in line:
                assert line.partition("called for db ")[2] == text
                return
        pytest.fail("slurmdbd ended without a word about its database")
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
