"""LoginSets on a real API server: what is made, what stays, what is told."""

import base64
import signal
import time
from typing import Any

import pytest

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

USERS = secret("users", sssd_conf="[sssd]", other="x")
HOST_KEYS = "login-ssh-host-keys"


def loginset(**spec: Any) -> dict[str, Any]:
    wanted = {
        "controllerRef": {"name": "alba"},
        "sssdConfRef": {"name": "users", "key": "sssd.conf"},
        "login": {"image": "registry.example/login:1"},
        "initconf": {"image": "registry.example/tools:1"},
    }
    return ours("LoginSet", "login", **{**wanted, **spec})


def there(space: Namespace, kind: str, name: str = "login") -> dict[str, Any]:
    return eventually(lambda: space.get(kind, name), what=f"{kind} {name}")


def reconciled(space: Namespace, generation: int = 1) -> None:
    """Wait until everything is as the spec of this generation wants it."""

    def done() -> bool:
        found = (space.get("loginset", "login") or {}).get("status", {}).get("conditions", [])
        return any(
            item["type"] == "Reconciled"
            and item["status"] == "True"
            and item["observedGeneration"] == generation
            for item in found
        )

    eventually(done, within=40, what="the LoginSet is reconciled")


def test_everything_is_made_once_and_in_one_pass(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(KEYS, USERS, controller("alba"), loginset(replicas=2))
    reconciled(space)
    assert {note for _, reason, note in space.events("LoginSet", "login") if reason == "CreateSucceeded"} == {
        f"Created *v1.Secret: {space.name}/{HOST_KEYS}",
        f"Created *v1.ConfigMap: {space.name}/login-ssh-config",
        f"Created *v1.Service: {space.name}/login",
        f"Created *v1.Deployment: {space.name}/login",
    }
    host_keys = there(space, "secret", HOST_KEYS)
    assert host_keys["immutable"]
    assert base64.b64decode(host_keys["data"]["ssh_host_rsa_key"]).startswith(b"-----BEGIN OPENSSH")
    # The built-in controllers make pods; nothing runs them.
    status = eventually(
        lambda: (found := there(space, "loginset")["status"]).get("replicas") == 2 and found,
        what="replicas are told",
    )
    assert status["selector"] == "app.kubernetes.io/instance=login,app.kubernetes.io/name=login"
    assert space.condition("loginset", "login", "Available") == ("False", "NotReady", "no login pod is ready")
    patched = [line for line in manager.writes() if line.startswith("patch") and "/loginsets/" not in line]
    assert [line for line in patched if "login" in line] == []
    space.kubectl("scale", "loginset", "login", "--replicas=3")
    eventually(lambda: there(space, "deployment")["spec"]["replicas"] == 3, what="the Deployment is scaled")


def test_host_keys_survive_everything_but_their_own_deletion(
    managed_server: ApiServer, space: Namespace
) -> None:
    """Invariant I10: an operator that starts anew, a changed LoginSet, a Controller that goes and comes."""
    with Manager(managed_server, namespaces=[space.name]) as first:
        first.wait_working()
        space.apply(KEYS, USERS, controller("alba"), loginset())
        reconciled(space)
        before = there(space, "secret", HOST_KEYS)
        first.end(signal.SIGTERM)
    with Manager(managed_server, namespaces=[space.name]) as second:
        second.wait_working()
        space.apply(loginset(extraSshdConfig="PermitRootLogin no"))
        reconciled(space, 2)
        space.kubectl("delete", "controller", "alba")
        space.wait_condition("loginset", "login", "Reconciled=False/ControllerMissing")
        space.apply(controller("alba"))
        reconciled(space, 2)
        after = there(space, "secret", HOST_KEYS)
        assert (after["metadata"]["uid"], after["data"]) == (before["metadata"]["uid"], before["data"])
        template = there(space, "deployment")["spec"]["template"]
        space.kubectl("delete", "secret", HOST_KEYS)
        eventually(
            lambda: there(space, "deployment")["spec"]["template"] != template, what="pods get the new keys"
        )
        assert there(space, "secret", HOST_KEYS)["data"] != before["data"]


def test_existing_host_keys_are_taken_as_they_are(space: Namespace, manager: Manager) -> None:
    """A Secret that somebody brought, even one that could be better (field case LGN-02)."""
    names = [f"ssh_host_{kind}_key{part}" for kind in ("rsa", "ecdsa", "ed25519") for part in ("", ".pub")]
    brought = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": HOST_KEYS}}
    manager.wait_working()
    space.apply({**brought, "stringData": dict.fromkeys(names, "brought")}, KEYS, USERS, controller("alba"))
    before = there(space, "secret", HOST_KEYS)["metadata"]["resourceVersion"]
    space.apply(loginset())
    reconciled(space)
    assert there(space, "secret", HOST_KEYS)["metadata"]["resourceVersion"] == before


def test_without_its_controller_nothing_is_made_and_one_event_says_so(
    space: Namespace, manager: Manager
) -> None:
    manager.wait_working()
    space.apply(KEYS, USERS, loginset())
    message = space.wait_condition("loginset", "login", "Reconciled=False/ControllerMissing")
    assert '"alba"' in message
    assert space.objects("deployments,services,configmaps,secrets") == [
        item
        for item in space.objects("deployments,services,configmaps,secrets")
        if item["metadata"]["name"] in ("keys", "users", "kube-root-ca.crt")
    ]
    told = [event for event in space.events("LoginSet", "login") if event[1] == "ControllerRefFailed"]
    assert len(told) == 1
    space.apply(controller("alba"))
    reconciled(space)


def test_pods_wait_for_sssd_conf_and_come_when_it_does(space: Namespace, manager: Manager) -> None:
    manager.wait_working()
    space.apply(KEYS, controller("alba"), loginset())
    message = space.wait_condition("loginset", "login", "Reconciled=False/SecretMissing", within=40)
    assert 'Secret "users" (spec.sssdConfRef) not found' in message
    assert space.get("deployment", "login") is None
    space.apply(USERS)
    reconciled(space)


def test_only_the_value_referred_to_replaces_pods(space: Namespace, manager: Manager) -> None:
    """Field case LGN-04; and a missing Secret replaces none either."""
    manager.wait_working()
    space.apply(KEYS, USERS, controller("alba"), loginset())
    reconciled(space)
    before = there(space, "deployment")
    space.apply(secret("users", sssd_conf="[sssd]", other="changed"))
    space.kubectl("delete", "secret", "users")
    space.wait_condition("loginset", "login", "Reconciled=False/SecretMissing")
    space.apply(USERS)
    reconciled(space)
    assert there(space, "deployment")["metadata"]["generation"] == before["metadata"]["generation"]
    space.apply(secret("users", sssd_conf="[changed]", other="x"))
    eventually(
        lambda: there(space, "deployment")["spec"]["template"] != before["spec"]["template"],
        what="a changed sssd.conf makes new pods",
    )


def test_the_strategy_is_the_users(space: Namespace, manager: Manager) -> None:
    """Field case LGN-11: from one to another; what the API refuses is told and not repeated at once."""
    manager.wait_working()
    space.apply(KEYS, USERS, controller("alba"))
    for generation, strategy in enumerate(
        (
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            {"type": "Recreate"},
        ),
        start=1,
    ):
        space.apply(loginset(strategy=strategy))
        reconciled(space, generation)
        assert there(space, "deployment")["spec"]["strategy"] == strategy
    mixed = {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}
    space.apply(loginset(strategy=mixed))
    message = space.wait_condition("loginset", "login", "Reconciled=False/Invalid")
    assert "rollingUpdate" in message
    tries = len([line for line in manager.writes() if "/deployments/login" in line])
    time.sleep(3)
    assert len([line for line in manager.writes() if "/deployments/login" in line]) == tries


def test_a_second_operator_over_an_unchanged_world_writes_nothing(
    managed_server: ApiServer, space: Namespace
) -> None:
    with Manager(managed_server, namespaces=[space.name]) as first:
        first.wait_working()
        space.apply(KEYS, USERS, controller("alba"), loginset(service={"spec": {"type": "NodePort"}}))
        reconciled(space)
        eventually(lambda: there(space, "loginset")["status"].get("replicas") == 1, what="replicas are told")
        first.end(signal.SIGTERM)
    with Manager(managed_server, namespaces=[space.name]) as second:
        second.wait_working()
        eventually(lambda: passes(second) >= 1, what="the LoginSet had a pass")
        time.sleep(1)
        assert [line for line in second.writes() if "login" in line] == []


def passes(manager: Manager) -> float:
    """Passes over LoginSets so far."""
    lines = manager.get(manager.metrics_port, "/metrics").splitlines()
    counts = [line for line in lines if line.startswith("controller_runtime_reconcile_total")]
    return sum(float(line.split()[-1]) for line in counts if "loginset" in line)


def test_a_loginset_on_its_way_out_makes_nothing(space: Namespace, manager: Manager) -> None:
    """While the garbage collector removes the children none of them comes back."""
    manager.wait_working()
    space.apply(KEYS, USERS, controller("alba"), loginset())
    reconciled(space)
    space.kubectl("delete", "loginset", "login", "--cascade=foreground")
    eventually(lambda: space.get("deployment", "login") is None, what="the Deployment is gone")
    eventually(lambda: space.get("secret", HOST_KEYS) is None, what="the host keys are gone")
