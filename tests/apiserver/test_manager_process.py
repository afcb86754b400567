"""The manager as a process: probes, metrics, exit codes, leadership (spec: control-plane 15)."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.apiserver import ApiServer
from tests.support.charts import template
from tests.support.manager import KEYS, Manager, Namespace, controller, eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]


def test_probes_and_metrics_are_served_and_a_signal_ends_it_cleanly(managed_server: ApiServer) -> None:
    space = Namespace(managed_server)
    with Manager(managed_server, "--controller-workers=3", namespaces=[space.name]) as manager:
        manager.wait_working()
        space.apply(KEYS, controller("alba"))
        space.wait_condition("controller", "alba", "Reconciled=True")
        assert manager.get(manager.health_port, "/healthz") == "ok"
        assert manager.get(manager.health_port, "/readyz") == "ok"
        series = manager.get(manager.metrics_port, "/metrics")
        for expected in (
            'controller_runtime_reconcile_total{controller="controller-controller",',
            'controller_runtime_max_concurrent_reconciles{controller="controller-controller"} 3.0',
            'controller_runtime_max_concurrent_reconciles{controller="restapi-controller"} 1.0',
            'workqueue_adds_total{controller="slurmclient-controller",',
            "rest_client_requests_total{",
            "process_resident_memory_bytes",
        ):
            assert expected in series
        assert manager.end(signal.SIGTERM) == 0


def test_secure_metrics_are_for_those_who_may_read_them(managed_server: ApiServer) -> None:
    space = Namespace(managed_server)
    role = f"{space.name}-reader"
    for account in ("reader", "stranger"):
        space.kubectl("create", "serviceaccount", account)
    space.kubectl("create", "clusterrole", role, "--verb=get", "--non-resource-url=/metrics")
    account = f"--serviceaccount={space.name}:reader"
    space.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", account)
    manager = Manager(managed_server, namespaces=[space.name])
    manager.add_flags(
        _metrics_flags(f"operator.metricsPort={manager.metrics_port}", "operator.metricsSecure=true")
    )
    with manager:
        manager.wait_working()

        def status(token: str | None) -> int:
            return manager.scrape(token)[0]

        assert status(None) == 401
        assert status("no-token") == 401
        assert status(space.kubectl("create", "token", "stranger").strip()) == 403
        code, text = manager.scrape(space.kubectl("create", "token", "reader").strip())
        assert code == 200
        assert "workqueue_adds_total" in text


def test_a_metrics_port_of_zero_listens_nowhere(managed_server: ApiServer) -> None:
    """Field case HLM-15, with the flags that the chart gives for it."""
    space = Namespace(managed_server)
    with Manager(managed_server, namespaces=[space.name]) as manager:
        manager.wait_working()
        assert _listening(manager) == {manager.health_port, manager.metrics_port}
    silent = Manager(managed_server, namespaces=[space.name])
    silent.add_flags(_metrics_flags("operator.metricsPort=0"))
    with silent:
        silent.wait_working()
        assert _listening(silent) == {silent.health_port}


def _metrics_flags(*values: str) -> list[str]:
    """What the chart tells the operator about metrics."""
    sets = [word for value in values for word in ("--set", value)]
    documents = template("slurm-operator", *sets, release="slurm-operator")
    (pod,) = [
        each["spec"]["template"]["spec"]
        for each in documents
        if (each["kind"], each["metadata"]["name"]) == ("Deployment", "slurm-operator")
    ]
    flags: list[str] = pod["containers"][0]["args"]
    address = flags.index("--metrics-addr")
    return [*flags[address : address + 2], *(flag for flag in flags if flag == "--metrics-secure")]


def _listening(manager: Manager) -> set[int]:
    """Ports that the process itself listens at."""
    links = [
        str(each.readlink())
        for each in Path(f"/proc/{manager.process.pid}/fd").iterdir()
        if each.is_symlink()
    ]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {int(row[1].rsplit(":", 1)[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes}


@pytest.mark.parametrize(
    ("flags", "code", "complaint"),
    [
        (["--no-such-flag"], 2, "unknown flag --no-such-flag"),
        (["--zap-log-level=loud"], 2, "log level 'loud'"),
        (["--kubeconfig=/no/such/file"], 1, "/no/such/file"),
        (["--metrics-addr=nonsense"], 2, "--metrics-addr: 'nonsense' is not an address"),
        (["--profile", "--profile-addr=192.0.2.1:1"], 1, "192.0.2.1"),
    ],
)
def test_what_it_cannot_start_with_is_told(
    managed_server: ApiServer, flags: list[str], code: int, complaint: str
) -> None:
    command = [
        *(sys.executable, "-m", "coil.service.manager", f"--kubeconfig={managed_server.kubeconfig}"),
        *("--health-addr=127.0.0.1:0", "--metrics-addr=0", *flags),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == code
    assert complaint in done.stderr


def _leader(space: Namespace) -> str:
    lease = space.get("lease", "slurm-operator") or {}
    return lease.get("spec", {}).get("holderIdentity") or ""


def _elected(space: Namespace) -> list[str]:
    return ["--leader-elect", f"--leader-elect-namespace={space.name}"]


def test_another_replica_takes_over_within_20_s_of_a_kill(managed_server: ApiServer) -> None:
    space = Namespace(managed_server)
    space.apply(KEYS)
    with Manager(managed_server, *_elected(space), namespaces=[space.name]) as first:
        first.wait_working()
        with Manager(managed_server, *_elected(space), namespaces=[space.name]) as second:
            eventually(lambda: second.logged("caches are filled"), what="the second waits for its turn")
            space.apply(controller("alba"))
            space.wait_condition("controller", "alba", "Reconciled=True")
            assert second.writes() == []
            before = _leader(space)
            first.end(signal.SIGKILL)
            eventually(lambda: _leader(space) not in (before, ""), within=20, what="the second leads")
            space.apply(controller("beta"))
            space.wait_condition("controller", "beta", "Reconciled=True")


def test_a_replica_that_is_told_to_stop_hands_over_at_once(managed_server: ApiServer) -> None:
    space = Namespace(managed_server)
    with Manager(managed_server, *_elected(space), namespaces=[space.name]) as first:
        first.wait_working()
        with Manager(managed_server, *_elected(space), namespaces=[space.name]) as second:
            eventually(lambda: second.logged("caches are filled"), what="the second waits for its turn")
            assert first.end(signal.SIGTERM) == 0
            second.wait_working(within=5)


def test_a_waiting_replica_ends_cleanly_too(managed_server: ApiServer) -> None:
    space = Namespace(managed_server)
    with Manager(managed_server, *_elected(space), namespaces=[space.name]) as first:
        first.wait_working()
        with Manager(managed_server, *_elected(space), namespaces=[space.name]) as second:
            eventually(lambda: second.logged("caches are filled"), what="the second waits for its turn")
            assert second.end(signal.SIGTERM, within=5) == 0
        assert first.process.poll() is None
