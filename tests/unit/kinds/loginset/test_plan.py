"""Claims about the steps, conditions and status of a LoginSet (spec: control-plane 8)."""

from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from coil.api import keys
from coil.api.controller import Controller
from coil.api.defaults import with_defaults
from coil.api.loginset import LoginSet
from coil.api.meta import Condition
from coil.build.defaults import with_server_defaults
from coil.build.hashes import byte_hash, map_hash
from coil.build.loginset import HOST_KEYS
from coil.kinds.children import Leave, Patch, decide
from coil.kinds.loginset.plan import Snapshot, conditions, needs_host_keys, status, steps
from coil.kinds.status import Problem
from coil.kinds.steps import Apply, Failed, Step
from coil.kube.views import ManifestView, ObjectMeta, SecretView

CONTROLLER = msgspec.convert(
    {
        "metadata": {"name": "alba", "namespace": "ns"},
        "spec": {"slurmKeyRef": {"name": "auth", "key": "slurm.key"}},
    },
    Controller,
)
FILES = {name: f"{name}'s text" for name in HOST_KEYS}
SSSD = {"sssd.conf": b"[sssd]", "other": b"x"}


def loginset(**spec: Any) -> LoginSet:
    meta = {"name": "login", "namespace": "ns", "uid": "u", "generation": 3}
    wanted = {
        "controllerRef": {"name": "alba"},
        "sssdConfRef": {"name": "users", "key": "sssd.conf"},
        "login": {"image": "registry.example/login:1"},
        "initconf": {"image": "registry.example/tools:1"},
    }
    return with_defaults(msgspec.convert({"metadata": meta, "spec": {**wanted, **spec}}, LoginSet))


def secret(name: str, data: dict[str, bytes]) -> SecretView:
    return SecretView(metadata=ObjectMeta(name=name, namespace="ns"), data=data)


def host_keys(**changes: bytes | None) -> SecretView:
    data = {name: text.encode() for name, text in FILES.items()}
    data |= {name.replace("__", "."): value for name, value in changes.items() if value is not None}
    for name in (name for name, value in changes.items() if value is None):
        del data[name]
    return secret("login-ssh-host-keys", data)


def world(**members: Any) -> Snapshot:
    """Everything is there; members replace parts."""
    complete: dict[str, Any] = {
        "loginset": loginset(),
        "controller": CONTROLLER,
        "slurm_key": secret("auth", {"slurm.key": b"k"}),
        "sssd": secret("users", SSSD),
        "host_keys": host_keys(),
    }
    return Snapshot(**{**complete, **members})


def named(snapshot: Snapshot) -> dict[str, Step]:
    return {step.name: step for step in steps(snapshot)}


def template(snapshot: Snapshot) -> dict[str, Any]:
    step = named(snapshot)["Deployment"]
    assert isinstance(step, Apply)
    return step.wanted["spec"]["template"]


def test_new_host_keys_are_the_first_step() -> None:
    snapshot = world(host_keys=None)
    assert needs_host_keys(snapshot)
    snapshot = msgspec.structs.replace(snapshot, new_host_keys=FILES)
    assert list(named(snapshot)) == ["SSH Host Keys", "SSH Config", "Service", "Deployment"]
    first, *_, last = steps(snapshot)
    assert isinstance(first, Apply)
    assert isinstance(last, Apply)
    assert first.wanted["stringData"] == FILES
    assert first.wanted["immutable"]
    assert last.needs == first.name


def test_pods_do_not_change_when_the_new_host_keys_are_seen_later() -> None:
    making = template(world(host_keys=None, new_host_keys=FILES))
    assert making == template(world())
    annotations = making["metadata"]["annotations"]
    assert annotations[keys.ANNOTATION_SSH_HOST_KEYS_HASH] == map_hash(FILES)


def test_existing_host_keys_are_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant I10: not even when they are not as they would be made."""
    monkeypatch.setattr("coil.kinds.loginset.hostkeys.generate", None)
    for existing in (host_keys(), host_keys(ssh_host_rsa_key=b"another"), host_keys(ssh_host_rsa_key=None)):
        snapshot = world(host_keys=existing)
        assert not needs_host_keys(snapshot)
        assert not isinstance(named(snapshot).get("SSH Host Keys"), Apply)


def test_a_missing_host_key_is_told_and_pods_wait_for_it() -> None:
    found = named(world(host_keys=host_keys(ssh_host_rsa_key=None)))
    step, last = found["SSH Host Keys"], found["Deployment"]
    assert isinstance(step, Failed)
    assert step.reason == "HostKeyMissing"
    assert "ssh_host_rsa_key;" in step.message
    assert isinstance(last, Apply)
    assert last.needs == step.name


def test_without_its_controller_nothing_is_made() -> None:
    snapshot = world(controller=None, host_keys=None)
    assert not needs_host_keys(snapshot)
    (step,) = steps(snapshot)
    assert isinstance(step, Failed)
    assert step.reason == "ControllerMissing"


@pytest.mark.parametrize(
    ("missing", "reason", "told"),
    [
        (
            {"sssd": None},
            "SecretMissing",
            'Secret "users" (spec.sssdConfRef) not found; create it with key "sssd.conf"',
        ),
        (
            {"sssd": secret("users", {})},
            "SecretKeyMissing",
            'Secret "users" (spec.sssdConfRef) has no key "sssd.conf"; add it',
        ),
        (
            {"slurm_key": None},
            "SecretMissing",
            'Secret "auth" (spec.slurmKeyRef of Controller alba) not found; create it with key "slurm.key"',
        ),
    ],
)
def test_pods_that_could_not_start_are_not_made(missing: dict[str, Any], reason: str, told: str) -> None:
    """And running ones are not replaced by them."""
    found = named(world(**missing))
    assert found["Deployment"] == Failed(name="Deployment", reason=reason, message=told)
    assert isinstance(found["Service"], Apply)
    assert isinstance(found["SSH Config"], Apply)


def test_only_the_value_referred_to_makes_new_pods() -> None:
    """Field case LGN-04."""
    before = template(world())
    assert template(world(sssd=secret("users", {**SSSD, "other": b"y"}))) == before
    after = template(world(sssd=secret("users", {**SSSD, "sssd.conf": b"[new]"})))
    assert after != before
    assert after["metadata"]["annotations"][keys.ANNOTATION_SSSD_CONF_HASH] == byte_hash(b"[new]")


def test_a_new_slurm_key_or_root_key_restarts_nothing() -> None:
    """Sessions are worth more (spec: control-plane 8.2)."""
    before = template(world())
    assert template(world(slurm_key=secret("auth", {"slurm.key": b"new"}))) == before
    assert template(world(loginset=loginset(rootSshAuthorizedKeys="ssh-ed25519 AAAA"))) == before


@pytest.mark.parametrize(
    "strategy",
    [
        {"type": "Recreate"},
        {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}},
    ],
)
def test_the_strategy_reaches_the_deployment_as_it_is(strategy: dict[str, Any]) -> None:
    """Field case LGN-11; from whatever strategy the live one has."""
    old, new = (
        named(world(loginset=loginset(**spec)))["Deployment"] for spec in ({}, {"strategy": strategy})
    )
    assert isinstance(old, Apply)
    assert isinstance(new, Apply)
    assert new.wanted["spec"]["strategy"] == strategy
    live = msgspec.convert(with_server_defaults(old.wanted), ManifestView)
    decision = decide(live, new.wanted)
    assert isinstance(decision, Patch)
    assert set(decision.body["spec"]) == {"strategy"}
    if strategy["type"] == "Recreate":
        assert decision.body["spec"]["strategy"]["rollingUpdate"] is None
    assert decide(msgspec.convert(with_server_defaults(new.wanted), ManifestView), new.wanted) == Leave()


@pytest.mark.parametrize(
    ("spec", "broken"),
    [({"service": {"spec": {"ports": "x"}}}, "Service"), ({"login": {"args": 1}}, "Deployment")],
)
def test_what_cannot_be_built_stops_no_other_step(spec: Any, broken: str) -> None:
    for step in steps(world(loginset=loginset(**spec))):
        assert isinstance(step, Failed if step.name == broken else Apply)


def test_an_external_controller_without_a_key_is_told() -> None:
    spec = {"external": True, "externalConfig": {"host": "ctl.example", "port": 6817}}
    external = msgspec.convert({"metadata": {"name": "alba"}, "spec": spec}, Controller)
    step = named(world(controller=external, slurm_key=None))["Deployment"]
    assert isinstance(step, Failed)
    assert (step.reason, "slurmKeyRef" in step.message) == ("Invalid", True)


def told(snapshot: Snapshot, problems: tuple[Problem, ...] = ()) -> dict[str, Condition]:
    return {condition.type: condition for condition in conditions(snapshot, problems)}


def deployment(**members: Any) -> ManifestView:
    return ManifestView(metadata=ObjectMeta(name="login"), status=members)


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ({}, ("False", "NoDeployment")),
        ({"deployment": deployment()}, ("False", "NotReady")),
        ({"deployment": deployment(replicas=2, availableReplicas=1)}, ("True", "Available")),
        ({"deployment": deployment(), "loginset": loginset(replicas=0)}, ("False", "NoReplicas")),
    ],
)
def test_it_is_available_when_people_can_log_in(members: Any, wanted: tuple[str, str]) -> None:
    available = told(world(**members))["Available"]
    assert (available.status, available.reason) == wanted
    assert available.observed_generation == 3


def test_a_weak_host_key_is_reported_and_stays() -> None:
    """Field case LGN-02: an older LoginSet with a key that clients refuse."""
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()  # noqa: S505 -- that it is weak is the point
    text = weak.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    snapshot = world(host_keys=host_keys(ssh_host_rsa_key__pub=text))
    strong = told(snapshot)["HostKeysStrong"]
    assert (strong.status, strong.reason) == ("False", "WeakKey")
    assert "1024 bits" in strong.message
    assert isinstance(named(snapshot)["Deployment"], Apply)
    assert told(world())["HostKeysStrong"].status == "True"
    assert "HostKeysStrong" not in told(world(host_keys=None))


def test_problems_are_told() -> None:
    reconciled = told(world(), (Problem("Deployment", "SecretMissing", "gone"),))["Reconciled"]
    assert (reconciled.status, reconciled.reason) == ("False", "SecretMissing")


def test_the_status_is_what_the_scale_subresource_reads() -> None:
    selector = "app.kubernetes.io/instance=login,app.kubernetes.io/name=login"
    assert status(world()) == {"replicas": 0, "selector": selector}
    assert status(world(deployment=deployment(replicas=2))) == {"replicas": 2, "selector": selector}
