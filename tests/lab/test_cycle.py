"""The lab comes and goes without a trace.

Takes the running lab down and starts it anew: `COIL_LAB_CYCLE=1 pytest tests/lab/test_cycle.py`, but not
beside others who use the lab.
"""

import json
import os
import time
from pathlib import Path

import pytest

from lab import baseimages, cgroups, checks, cluster, daemons, node, topology
from lab.processes import run

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("COIL_LAB_CYCLE"), reason="restarts the lab: set COIL_LAB_CYCLE=1"),
]


def _machine() -> dict[str, str]:
    """What `lab down` must leave as it was."""
    commands = {
        "routes": "ip route",
        "links": "ip -brief link",
        "filter": "iptables -S",
        "nat": "iptables -t nat -S",
    }
    found = {name: run(*command.split()) for name, command in commands.items()}
    for path in (
        "/etc/hosts",
        "/etc/resolv.conf",
        "/proc/sys/kernel/panic",
        "/proc/sys/vm/overcommit_memory",
    ):
        found[path] = Path(path).read_text()
    return found


def _ready_nodes() -> int:
    return cluster.kubectl("get", "nodes", "--no-headers").count(" Ready ")


def test_down_leaves_the_machine_as_it_was_and_up_starts_in_less_than_a_minute() -> None:
    cluster.down()
    before = _machine()

    begin = time.monotonic()
    cluster.up()
    assert time.monotonic() - begin < 60
    assert _ready_nodes() == topology.DEFAULT_NODES
    assert checks.leftovers(), "a running lab is seen by the check"
    cluster.down()

    assert checks.leftovers() == []
    assert _machine() == before
    cluster.up()


def test_up_and_down_may_be_repeated() -> None:
    cluster.up()
    first = {name: daemons.process(name) for name in daemons.known()}
    cluster.up()
    assert {name: daemons.process(name) for name in daemons.known()} == first, "nothing was restarted"

    cluster.down()
    cluster.down()
    assert checks.leftovers() == []
    cluster.up()


def test_up_repairs_what_died() -> None:
    cluster.up()
    worker = topology.nodes(topology.DEFAULT_NODES)[1]
    for name in ("etcd", "kube-apiserver", worker.daemon("kubelet"), worker.daemon("containerd")):
        daemons.stop(name, grace_seconds=0)

    cluster.up()

    assert all(daemons.process(name) for name in daemons.known())
    assert _ready_nodes() == topology.DEFAULT_NODES


def test_a_node_that_lost_power_comes_back() -> None:
    cluster.up()
    worker = topology.nodes(topology.DEFAULT_NODES)[1]
    cgroups.kill_all(worker.name)

    cluster.up()

    assert _ready_nodes() == topology.DEFAULT_NODES
    where = json.dumps({"spec": {"nodeName": worker.name}})
    command = (
        "--image",
        baseimages.BUSYBOX,
        "--restart=Never",
        "--command",
        "--",
        "nslookup",
        "kubernetes.default.svc.cluster.local",
    )
    cluster.kubectl("run", "after-power-loss", f"--overrides={where}", *command)
    cluster.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/after-power-loss", "--timeout=60s"
    )
    cluster.kubectl("delete", "pod", "after-power-loss")


@pytest.mark.parametrize("point", ["start_agents", "write_credentials"])
def test_a_start_that_crashed_can_be_repeated(point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.down()
    target = {"start_agents": "start_agents", "write_credentials": "_write_credentials"}[point]

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(node, target, crash)
        with pytest.raises(KeyboardInterrupt):
            cluster.up()
    assert cgroups.processes(), "it crashed in the middle"

    cluster.up()

    assert _ready_nodes() == topology.DEFAULT_NODES
