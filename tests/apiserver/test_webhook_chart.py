"""The webhook as the chart installs it, certificate and all, on a real API server (field cases WHK).

The API server finds the webhook by its Service, as in a cluster; the test plays the kubelet and the
endpoint controller: it hands the Secret's files to the process and names its address.
"""

import base64
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from lab.apiserver import ApiServer
from lab.certificates import Credentials
from tests.support.apiserver import kubectl
from tests.support.charts import CHARTS, helm, template
from tests.support.manager import Namespace, eventually, ours
from tests.support.webhook import Webhook, attempt, grant, send

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(180)]

SECRET = "slurm-operator-webhook-ca"
SERVICE = "slurm-operator-webhook"


class Release:
    """The operator's chart in a namespace of its own, for objects of one other namespace."""

    def __init__(self, server: ApiServer, checked: Namespace) -> None:
        self._server, self._checked = server, checked
        self.own = Namespace(server)
        self.name = f"w-{self.own.name}"

    def install(self, port: int) -> None:
        """Install, or upgrade with the same values."""
        values = {
            "certManager.enabled": "false",
            "webhook.podsBinding": "true",
            "webhook.namespaces": self._checked.name,
            "webhook.serverPort": str(port),
        }
        sets = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
        self._helm("upgrade", "--install", self.name, str(CHARTS / "slurm-operator"), *sets)

    def uninstall(self) -> None:
        """Remove all of it."""
        self._helm("uninstall", self.name)

    def _helm(self, *arguments: str) -> None:
        command = [str(helm()), f"--kubeconfig={self._server.kubeconfig}", "--namespace", self.own.name]
        subprocess.run([*command, *arguments], capture_output=True, check=True)

    def certificate(self) -> Credentials:
        """What the chart made."""
        data = (self.own.get("secret", SECRET) or {})["data"]
        return Credentials(*(base64.b64decode(data[name]) for name in ("tls.crt", "tls.key")))

    def bundle(self) -> set[str]:
        """The authorities that the API server trusts."""
        name = f"{self.name}-slurm-operator-webhook"
        kinds = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
        found = [self.own.get(kind, name) or {} for kind in kinds]
        return {hook["clientConfig"]["caBundle"] for item in found for hook in item["webhooks"]}

    def endpoint(self, port: int) -> None:
        """Say where the webhook is, as the endpoint controller would."""
        self.own.apply(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": SERVICE, "labels": {"kubernetes.io/service-name": SERVICE}},
                "addressType": "IPv4",
                "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
                "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}],
            }
        )


def own_address() -> str:
    """An address of this machine that is not loopback, which endpoints must not have."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


@pytest.fixture
def server(api_server: ApiServer) -> ApiServer:
    folder = CHARTS / "slurm-operator-crds" / "templates"
    kubectl(api_server, "apply", "--server-side", "--force-conflicts", "-f", str(folder))
    kubectl(api_server, "wait", "--for=condition=Established", "--timeout=30s", "-f", str(folder))
    grant(api_server)
    return api_server


@pytest.fixture
def checked(server: ApiServer) -> Namespace:
    return Namespace(server)


@pytest.fixture
def webhook(server: ApiServer) -> Iterator[Webhook]:
    with Webhook(server) as process:
        yield process


@pytest.fixture
def release(server: ApiServer, checked: Namespace, webhook: Webhook) -> Iterator[Release]:
    made = Release(server, checked)
    made.install(webhook.port)
    yield made
    made.uninstall()


def nodeset(name: str, controller: str = "alba") -> dict[str, Any]:
    image = {"image": "registry.example/any:1"}
    return ours("NodeSet", name, controllerRef={"name": controller}, slurmd=image, logfile=image)


def bound(server: ApiServer, namespace: str) -> tuple[int, str]:
    """Make a pod, bind it to a node."""
    container = {"name": "main", "image": "registry.example/any:1"}
    labels = {"app.kubernetes.io/name": "slurmd"}
    pod = {"metadata": {"name": "w", "labels": labels}, "spec": {"containers": [container]}}
    document = json.dumps({"apiVersion": "v1", "kind": "Pod", **pod})
    kubectl(server, "-n", namespace, "apply", "-f", "-", stdin=document)
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "w"}, "target": {"name": "kn"}}
    path = f"/api/v1/namespaces/{namespace}/pods/w/binding"
    return attempt(server, "create", "--raw", path, "-f", "-", stdin=json.dumps(body))


def test_an_unreachable_webhook_stops_nothing_but_writes_of_our_kinds(
    server: ApiServer, checked: Namespace, release: Release
) -> None:
    """Invariant I5, field case WHK-01: a power cut took all replicas."""
    assert release.bundle()
    eventually(lambda: send(server, checked, nodeset("gpu"), "--dry-run=server")[0], what="it is asked")
    said = send(server, checked, nodeset("gpu"))[1]
    assert "failed calling webhook" in said
    for namespace in (checked.name, Namespace(server).name):
        assert bound(server, namespace)[0] == 0


def test_the_chart_s_certificate_works_is_kept_by_upgrades_and_replaced_without_a_restart(
    server: ApiServer, checked: Namespace, release: Release, webhook: Webhook
) -> None:
    """Field case WHK-04."""
    webhook.write(release.certificate())
    release.endpoint(webhook.port)

    def answered(name: str, controller: str = "alba") -> str:
        return send(server, checked, nodeset(name, controller))[1]

    eventually(lambda: "must be set" in answered("bad", ""), what="a bad object is refused by the webhook")
    assert "gpu created" in answered("gpu")
    before = (release.certificate(), release.bundle())
    release.install(webhook.port)
    assert (release.certificate(), release.bundle()) == before
    assert "cpu created" in answered("cpu")

    release.own.kubectl("delete", "secret", SECRET)
    release.install(webhook.port)
    renewed = release.certificate()
    assert renewed.certificate != before[0].certificate
    # The kubelet needs a minute to hand over the files: until then both authorities are trusted.
    assert "one created" in answered("one")
    webhook.write(renewed)
    eventually(lambda: served(webhook) == renewed.certificate, what="the new certificate is served")
    assert "two created" in answered("two")
    release.install(webhook.port)
    assert release.certificate() == renewed
    assert len(release.bundle()) == 1
    assert release.bundle() != before[1]
    assert "three created" in answered("three")
    assert webhook.process.poll() is None


def served(webhook: Webhook) -> bytes:
    return ssl.get_server_certificate(("127.0.0.1", webhook.port), timeout=5).encode()


@pytest.mark.parametrize("manager", ["true", "false"])
def test_the_chart_mounts_the_certificate_and_spares_system_namespaces(manager: str) -> None:
    """Field case WHK-06, for certificates of cert-manager and of Helm."""
    sets = ("--set", "webhook.podsBinding=true", "--set", f"certManager.enabled={manager}")
    documents = {item["kind"]: item for item in template("slurm-operator", *sets, namespace="slinky")}
    (binding,) = documents["MutatingWebhookConfiguration"]["webhooks"]
    (spared,) = binding["namespaceSelector"]["matchExpressions"]
    assert set(spared["values"]) == {"kube-system", "kube-public", "kube-node-lease", "slinky"}
    assert (spared["operator"], binding["failurePolicy"]) == ("NotIn", "Ignore")
    assert binding["sideEffects"] == "NoneOnDryRun"
    assert "objectSelector" not in binding
    if manager == "true":
        assert documents["Certificate"]["spec"]["secretName"] == SECRET
        annotations = documents["MutatingWebhookConfiguration"]["metadata"]["annotations"]
        assert annotations["cert-manager.io/inject-ca-from"] == f"slinky/{SECRET}"
    else:
        assert documents["Secret"]["metadata"]["name"] == SECRET
        assert binding["clientConfig"]["caBundle"]
