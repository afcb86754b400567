"""The webhook on pods/binding, called by a real API server (spec: control-plane 13.7; field cases WHK)."""

import json
import time
from collections.abc import Iterator

import pytest

from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl
from tests.support.manager import Namespace, eventually
from tests.support.webhook import Registration, Webhook, attempt, binding, grant

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

MUTATING = "MutatingWebhookConfiguration"
TOPOLOGY = "topology.slinky.slurm.net/spec"
NODE = "kn-topology"


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> ApiServer:
    grant(api_server)
    annotations = {TOPOLOGY: "block:b1"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "annotations": annotations}}
    kubectl(api_server, "apply", "-f", "-", stdin=json.dumps(node))
    return api_server


@pytest.fixture(scope="module")
def webhook(server: ApiServer) -> Iterator[Webhook]:
    with Webhook(server) as running:
        yield running.start()


@pytest.fixture
def space(server: ApiServer) -> Namespace:
    return Namespace(server)


@pytest.fixture
def registration(server: ApiServer, space: Namespace) -> Iterator[Registration]:
    with Registration(server, MUTATING, f"m-{space.name}") as made:
        yield made


def pod(space: Namespace, name: str, application: str = "slurmd") -> None:
    container = {"name": "main", "image": "registry.example/any:1"}
    labels = {"app.kubernetes.io/name": application}
    metadata = {"name": name, "labels": labels}
    space.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    )


def bind(
    server: ApiServer, space: Namespace, name: str, node: str = NODE, query: str = ""
) -> tuple[int, str]:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    path = f"/api/v1/namespaces/{space.name}/pods/{name}/binding{query}"
    return attempt(server, "create", "--raw", path, "-f", "-", stdin=json.dumps(body))


def annotation(space: Namespace, name: str) -> str | None:
    return (space.get("pod", name) or {})["metadata"].get("annotations", {}).get(TOPOLOGY)


def node_of(space: Namespace, name: str) -> str | None:
    return (space.get("pod", name) or {})["spec"].get("nodeName")


def wait_asked(server: ApiServer, space: Namespace, webhook: Webhook) -> None:
    """The API server takes a moment to see a registration."""

    def asked() -> bool:
        bind(server, space, "nobody")
        return any(
            entry.get("namespace") == space.name and entry.get("name") == "nobody"
            for entry in webhook.entries()
        )

    eventually(asked, what="the webhook is asked")


@pytest.fixture
def asked(server: ApiServer, space: Namespace, registration: Registration, webhook: Webhook) -> Webhook:
    registration.apply(binding(webhook, space))
    wait_asked(server, space, webhook)
    return webhook


@pytest.mark.usefixtures("asked")
def test_a_worker_gets_the_topology_of_its_node_and_others_are_left_alone(
    server: ApiServer, space: Namespace
) -> None:
    """Field case WHK-02: narrowed by namespace, the webhook still sees every worker there."""
    pod(space, "worker")
    pod(space, "other", "web")
    for name in ("worker", "other"):
        assert bind(server, space, name)[0] == 0
        assert node_of(space, name) == NODE
    assert annotation(space, "worker") == "block:b1"
    assert annotation(space, "other") is None


@pytest.mark.usefixtures("asked")
def test_a_node_that_is_unknown_or_says_nothing_gives_no_topology(
    server: ApiServer, space: Namespace
) -> None:
    plain = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"{space.name}-node"}}
    kubectl(server, "apply", "-f", "-", stdin=json.dumps(plain))
    pod(space, "first")
    pod(space, "second")
    assert bind(server, space, "first", f"{space.name}-node")[0] == 0
    assert annotation(space, "first") == ""
    assert bind(server, space, "second", "no-such-node")[0] == 0
    assert annotation(space, "second") is None


@pytest.mark.usefixtures("asked")
def test_a_dry_run_changes_nothing(server: ApiServer, space: Namespace) -> None:
    """Field case WHK-03."""
    pod(space, "worker")
    assert bind(server, space, "worker", query="?dryRun=All")[0] == 0
    assert annotation(space, "worker") is None
    assert node_of(space, "worker") is None


@pytest.mark.usefixtures("asked")
def test_a_pod_that_does_not_exist_cannot_be_bound(server: ApiServer, space: Namespace) -> None:
    code, said = bind(server, space, "nobody")
    assert code != 0
    assert "nobody" in said


def test_pods_are_bound_while_the_webhook_is_unreachable(
    server: ApiServer, space: Namespace, registration: Registration
) -> None:
    """Invariant I5, field case WHK-01: nobody listens where the webhook was; workers and others are bound."""
    with Webhook(server) as webhook:
        webhook.start()
        registration.apply(binding(webhook, space))
        wait_asked(server, space, webhook)
    for name, application in (("worker", "slurmd"), ("other", "web")):
        pod(space, name, application)
        begun = time.monotonic()
        assert bind(server, space, name)[0] == 0
        assert time.monotonic() - begun < 10
        assert node_of(space, name) == NODE


def test_pods_are_bound_by_a_webhook_without_rights(
    server: ApiServer, space: Namespace, registration: Registration
) -> None:
    """Invariant I5: a webhook that answers, but may read nothing."""
    with Webhook(server, group="nobodies") as webhook:
        webhook.start()
        registration.apply(binding(webhook, space))
        wait_asked(server, space, webhook)
        pod(space, "worker")
        assert bind(server, space, "worker")[0] == 0
        assert node_of(space, "worker") == NODE
        told = [entry for entry in webhook.entries() if entry["msg"] == "topology not handed over"]
        assert any(entry["pod"] == f"{space.name}/worker" and "Forbidden" in entry["error"] for entry in told)
