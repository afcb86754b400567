"""Accounting on a real API server: what is made, what waits, what follows a change, what is left alone."""

import base64
import signal
from typing import Any

import pytest

from coil.api import keys
from lab.apiserver import ApiServer
from tests.support.manager import (
    KEYS,
    Manager,
    Namespace,
    controller,
    eventually,
    ours,
    secret,
)

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

PASSWORD = secret("db", password="sesame", other="1")
STORAGE = {"host": "db", "username": "slurm", "passwordKeyRef": {"name": "db", "key": "password"}}


def accounting(name: str = "acct", **spec: Any) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "slurmdbd": {"image": "registry.example/slurmdbd:1"},
        "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
        "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
        "storageConfig": STORAGE,
    }
    given = {name: value for name, value in {**wanted, **spec}.items() if value is not None}
    return ours("Accounting", name, **given)


def outside(host: str, port: int) -> dict[str, Any]:
    return ours("Accounting", "acct", external=True, externalConfig={"host": host, "port": port})


def conf(space: Namespace) -> str:
    found = space.get("secret", "acct-accounting") or {"data": {keys.FILE_SLURMDBD_CONF: ""}}
    return base64.b64decode(found["data"][keys.FILE_SLURMDBD_CONF]).decode()


def generation(space: Namespace) -> int:
    found = space.get("statefulset", "acct-accounting")
    return found["metadata"]["generation"] if found else 0


def slurm_conf(space: Namespace) -> str:
    return (space.get("configmap", "alba-config") or {"data": {"slurm.conf": ""}})["data"]["slurm.conf"]


def test_the_three_children_are_made_and_told(space: Namespace, manager: Manager) -> None:
    space.apply(accounting(), KEYS, PASSWORD)
    space.wait_condition("accounting", "acct", "Reconciled=True/AllAsWanted")
    space.wait_condition("accounting", "acct", "Available=False")
    space.wait_condition("accounting", "acct", "DatabaseExclusive=True")
    assert "StoragePass=sesame" in conf(space)
    made = {note for _, reason, note in space.events("Accounting", "acct") if reason == "CreateSucceeded"}
    assert made == {
        f"Created *v1.{kind}: {space.name}/acct-accounting" for kind in ("Service", "Secret", "StatefulSet")
    }
    written = [line for line in manager.writes() if "/events" not in line and "/status" not in line]
    assert [line.partition(" ")[0] for line in written] == ["create"] * 3


def test_restarting_the_operator_over_an_unchanged_world_writes_nothing(
    managed_server: ApiServer, space: Namespace
) -> None:
    storage = {**STORAGE, "host": "elsewhere", "passwordKeyRef": {"name": "absent", "key": "x"}}
    with Manager(managed_server, namespaces=[space.name]) as first:
        first.wait_working()
        space.apply(KEYS, PASSWORD, accounting(extraConf="DebugLevel=verbose\n"))
        space.apply(accounting("waits", storageConfig=storage), accounting("bare", storageConfig=None))
        space.wait_condition("accounting", "acct", "Reconciled=True")
        space.wait_condition("accounting", "waits", "Reconciled=False/SecretMissing")
        space.wait_condition("accounting", "bare", "Reconciled=False/StorageMissing")
        eventually(lambda: space.get("pod", "acct-accounting-0"), what="there is a pod")
        space.wait_condition("accounting", "acct", "Available=False/NotReady")
        first.end(signal.SIGTERM)
    with Manager(managed_server, namespaces=[space.name]) as second:
        second.wait_working()
        eventually(lambda: passes(second) >= 3, what="every object had a pass")
        assert second.writes() == []


def passes(manager: Manager) -> float:
    """Passes over Accountings so far."""
    series = manager.get(manager.metrics_port, "/metrics").splitlines()
    found = (line for line in series if line.startswith("controller_runtime_reconcile_total"))
    return sum(float(line.rpartition(" ")[2]) for line in found if "accounting" in line)


@pytest.mark.usefixtures("manager")
def test_what_is_missing_is_told_and_used_when_it_comes(space: Namespace) -> None:
    space.apply(KEYS, accounting())
    message = space.wait_condition("accounting", "acct", "Reconciled=False/SecretMissing")
    missing = 'Secret "db" not found; create it with key "password"'
    assert message.startswith(f"Config: {missing}")
    failed = [note for _, reason, note in space.events("Accounting", "acct") if reason == "SyncFailed"]
    assert failed == [f'Failed "Config" step: {missing}']
    assert space.get("statefulset", "acct-accounting") is None
    assert space.get("service", "acct-accounting") is not None
    space.apply(secret("db", wrong="x"))
    space.wait_condition("accounting", "acct", "Reconciled=False/SecretKeyMissing")
    space.apply(PASSWORD)
    space.wait_condition("accounting", "acct", "Reconciled=True", within=5)
    assert generation(space) == 1


@pytest.mark.usefixtures("manager")
def test_without_a_database_nothing_is_made_until_one_is_named(space: Namespace) -> None:
    space.apply(accounting(storageConfig=None), PASSWORD)
    message = space.wait_condition("accounting", "acct", "Reconciled=False/StorageMissing")
    assert "spec.storageConfig is not given" in message
    assert 'Secret "keys" not found' in message
    space.apply(accounting(), KEYS)
    space.wait_condition("accounting", "acct", "Reconciled=True", within=5)


@pytest.mark.usefixtures("manager")
def test_a_changed_password_restarts_slurmdbd_once(space: Namespace) -> None:
    """Q7 and field case DBD-13; another key of the same Secret matters to nobody."""
    space.apply(accounting(), KEYS, PASSWORD)
    space.wait_condition("accounting", "acct", "Reconciled=True")
    space.apply(secret("db", password="sesame", other="2"))
    space.apply(secret("db", password="open # it", other="2"))
    eventually(lambda: generation(space) == 2, within=5, what="the pod template has the new hash")
    assert 'StoragePass="open \\# it"' in conf(space)


def test_a_lost_password_or_key_leaves_the_running_slurmdbd_alone(space: Namespace, manager: Manager) -> None:
    space.apply(accounting(), KEYS, PASSWORD)
    space.wait_condition("accounting", "acct", "Reconciled=True")
    space.kubectl("delete", "secret", "db", "keys")
    eventually(
        lambda: "SecretMissing" in str(space.condition("accounting", "acct", "Reconciled")), what="it is told"
    )
    assert generation(space) == 1
    assert "StoragePass=sesame" in conf(space)
    before = len([line for line in manager.writes() if "acct-accounting" in line])
    space.apply(KEYS, PASSWORD)
    space.wait_condition("accounting", "acct", "Reconciled=True", within=5)
    assert len([line for line in manager.writes() if "acct-accounting" in line]) == before


@pytest.mark.usefixtures("manager")
def test_a_password_that_would_break_the_file_is_refused_without_showing_it(space: Namespace) -> None:
    space.apply(accounting(), KEYS, secret("db", password="open\nSlurmUser=root"))
    message = space.wait_condition("accounting", "acct", "Reconciled=False/Invalid")
    assert "line break" in message
    assert "SlurmUser" not in message
    assert space.get("secret", "acct-accounting") is None


@pytest.mark.usefixtures("manager")
def test_a_controller_follows_its_accounting(space: Namespace) -> None:
    """It comes, gets ready, moves out of the cluster and moves there (Q2, field case DBD-16)."""
    space.apply(KEYS, PASSWORD, controller("alba", accountingRef={"name": "acct"}))
    space.wait_condition("controller", "alba", "Reconciled=True")
    space.apply(accounting())
    space.wait_condition("controller", "alba", "Reconciled=False/AccountingUnavailable")
    assert "accounting_storage/none" in slurm_conf(space)
    eventually(lambda: space.get("pod", "acct-accounting-0"), what="there is a pod")
    ready = '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'
    space.kubectl("patch", "pod", "acct-accounting-0", "--subresource=status", "--patch", ready)
    eventually(lambda: "AccountingStorageHost=acct-accounting\n" in slurm_conf(space), what="it is used")
    space.kubectl("delete", "accounting", "acct")
    space.apply(outside("dbd.example.test", 7031))
    eventually(lambda: "AccountingStorageHost=dbd.example.test\n" in slurm_conf(space), what="it has moved")
    space.apply(outside("dbd.example.test", 7032))
    eventually(lambda: "AccountingStoragePort=7032\n" in slurm_conf(space), what="it has another port")


@pytest.mark.usefixtures("manager")
def test_an_external_accounting_has_no_children(space: Namespace) -> None:
    space.apply(outside("dbd.example.test", 7031))
    space.wait_condition("accounting", "acct", "Available=Unknown/External")
    space.wait_condition("accounting", "acct", "Reconciled=True")
    assert space.objects("statefulsets,services,secrets") == []


@pytest.mark.usefixtures("manager")
def test_two_accountings_on_one_database_are_told_of_one_another(space: Namespace) -> None:
    """Field case DBD-14."""
    same = {**STORAGE, "host": f"db.{space.name}.svc.cluster.local"}
    space.apply(KEYS, PASSWORD, accounting())
    space.wait_condition("accounting", "acct", "DatabaseExclusive=True")
    space.apply(accounting("second", storageConfig=same))
    for name, other in (("acct", "second"), ("second", "acct")):
        message = space.wait_condition("accounting", name, "DatabaseExclusive=False/Shared")
        assert f"{space.name}/{other}" in message
        eventually(lambda of=name: _warned(space, of), what="there is an event")
    space.apply(accounting("second", storageConfig={**same, "database": "another"}))
    for name in ("acct", "second"):
        space.wait_condition("accounting", name, "DatabaseExclusive=True", within=5)


def _warned(space: Namespace, name: str) -> bool:
    return any(reason == "DatabaseShared" for _, reason, _ in space.events("Accounting", name))
