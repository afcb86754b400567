"""Deleting a namespace with a cluster in it: nothing can be made there any more, and nobody is to be told."""

import json
from typing import Any

import pytest

from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl
from tests.support.manager import (
    KEYS,
    Manager,
    Namespace,
    controller,
    eventually,
    ours,
    secret,
)

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(180)]

WORKERS = 20
LIMIT = 60
"""Requests that may be refused: 33 were measured; what is retried with backoff takes hundreds."""
REF = {"name": "alba"}


def image(name: str) -> dict[str, str]:
    return {"image": f"registry.example/{name}:1"}


def install(space: Namespace) -> None:
    """A cluster of every kind, with all its pods."""
    sssd = {"name": "users", "key": "sssd.conf"}
    space.apply(
        KEYS,
        secret("users", sssd_conf="[sssd]"),
        controller("alba"),
        ours("RestApi", "alba", controllerRef=REF, slurmrestd=image("slurmrestd")),
        ours(
            "NodeSet",
            "cpu",
            controllerRef=REF,
            replicas=WORKERS,
            oversubscribeNode=True,
            slurmd=image("slurmd"),
            logfile=image("tools"),
        ),
        ours(
            "LoginSet",
            "login",
            controllerRef=REF,
            sssdConfRef=sssd,
            login=image("login"),
            initconf=image("t"),
        ),
        ours("Token", "admin", username="root", jwtHs256KeyRef={"name": "keys", "key": "jwt.key"}),
    )

    def complete() -> bool:
        labels = [pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in space.objects("pods")]
        return labels.count("slurmd") == WORKERS and {"slurmctld", "slurmrestd", "login"} <= set(labels)

    eventually(complete, within=60, what="all pods are made")
    space.wait_condition("token", "admin", "Available=True")


def refused(server: ApiServer, space: Namespace, user: str) -> list[str]:
    """The manager's requests that were refused because the namespace ends."""
    events = [json.loads(line) for line in server.audit_log.read_text().splitlines()]
    return [
        f"{event['verb']} {event['requestURI']}"
        for event in events
        if event["user"]["username"] == user
        and event.get("responseStatus", {}).get("code") == 403
        and f"/namespaces/{space.name}/" in event["requestURI"]
    ]


def told(manager: Manager) -> list[dict[str, Any]]:
    return [entry for entry in manager.entries() if entry["level"] in ("error", "warn", "warning")]


def test_a_namespace_goes_in_silence(managed_server: ApiServer, space: Namespace, manager: Manager) -> None:
    """No warning in the log, no pass that is tried again, and far fewer refusals than objects that went."""
    manager.wait_working()
    install(space)
    before = len(told(manager))
    kubectl(managed_server, "delete", "namespace", space.name, "--wait=false")
    eventually(
        lambda: not kubectl(managed_server, "get", "namespace", space.name, "--ignore-not-found"),
        within=90,
        what="the namespace is gone",
    )
    assert [entry["msg"] for entry in told(manager)[before:]] == []
    assert len(refused(managed_server, space, manager.user)) <= LIMIT
    series = manager.get(manager.metrics_port, "/metrics").splitlines()
    failed = [line for line in series if line.startswith("controller_runtime_reconcile_errors_total{")]
    assert [line for line in failed if not line.endswith(" 0.0")] == []
