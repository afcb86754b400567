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
from lab.certificates import Authority, Credentials, Subject
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

    def install(self, port: int, *, cert_manager: bool = False) -> None:
        """Install, or upgrade."""
        values = {
            "certManager.enabled": str(cert_manager).lower(),
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

    def mounted(self) -> str:
        """Name of the Secret that the webhook's pods mount."""
        pod = (self.own.get("deployment", SERVICE) or {})["spec"]["template"]["spec"]
        return str(pod["volumes"][0]["secret"]["secretName"])

    def certificate(self) -> Credentials:
        """What the pods mount."""
        data = (self.own.get("secret", self.mounted()) or {})["data"]
        return Credentials(*(base64.b64decode(data[name]) for name in ("tls.crt", "tls.key")))

    def bundle(self) -> set[str]:
        """The authorities that the API server trusts."""
        name = f"{self.name}-slurm-operator-webhook"
        kinds = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
        found = [self.own.get(kind, name) or {} for kind in kinds]
        return {hook["clientConfig"].get("caBundle", "") for item in found for hook in item["webhooks"]}

    def inject(self, authority: bytes) -> None:
        """Name the authority in the registrations, as cert-manager's injector does."""
        name = f"{self.name}-slurm-operator-webhook"
        bundle = base64.b64encode(authority).decode()
        for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
            hooks = (self.own.get(kind, name) or {})["webhooks"]
            patch = [
                {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
                for index in range(len(hooks))
            ]
            self.own.kubectl("patch", kind, name, "--type=json", "-p", json.dumps(patch))

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


def foreign_kinds(server: ApiServer) -> None:
    """What cert-manager brings, without a schema."""
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definitions = [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.cert-manager.io"},
            "spec": {
                "group": "cert-manager.io",
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind},
                "versions": [version],
            },
        }
        for plural, kind in (("issuers", "Issuer"), ("certificates", "Certificate"))
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": definitions})
    kubectl(server, "apply", "--server-side", "-f", "-", stdin=text)
    names = [f"crd/{plural}.cert-manager.io" for plural in ("issuers", "certificates")]
    kubectl(server, "wait", "--for=condition=Established", "--timeout=30s", *names)


def issue(release: Release, authority: Authority) -> Credentials:
    """Fill the Secret as cert-manager does for the chart's Certificate."""
    host = f"{SERVICE}.{release.own.name}.svc"
    made = authority.issue(Subject(SERVICE, hosts=[host]))
    parts = {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": authority.credentials.certificate}
    metadata = {"name": SECRET, "annotations": {"cert-manager.io/certificate-name": SECRET}}
    data = {name: base64.b64encode(value).decode() for name, value in parts.items()}
    kind = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
    release.own.apply({**kind, "metadata": metadata, "data": data})
    return made


def trusted(release: Release, webhook: Webhook) -> bool:
    """Whether an API server that trusts what is registered talks to the webhook."""
    (bundle,) = release.bundle()
    if not bundle:
        return False
    context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    host = f"{SERVICE}.{release.own.name}.svc"
    with socket.create_connection(("127.0.0.1", webhook.port), timeout=10) as plain:
        try:
            context.wrap_socket(plain, server_hostname=host).close()
        except ssl.SSLCertVerificationError:
            return False
    return True


def served_with(webhook: Webhook, credentials: Credentials) -> None:
    webhook.write(credentials)
    eventually(lambda: served(webhook) == credentials.certificate, what="the new certificate is served")


def test_certificates_change_hands_between_cert_manager_and_helm(
    server: ApiServer, checked: Namespace, webhook: Webhook
) -> None:
    """`certManager.enabled` true, false, true by upgrades: both own what they made, no question is lost."""
    foreign_kinds(server)
    release, authority = Release(server, checked), Authority.create("cert-manager")
    release.install(webhook.port, cert_manager=True)
    first = issue(release, authority)
    release.inject(authority.credentials.certificate)
    webhook.write(first)
    eventually(lambda: webhook.status(webhook.health_port, "/readyz") == 200, what="it is ready")
    assert trusted(release, webhook)

    release.install(webhook.port, cert_manager=False)
    assert release.mounted() == f"{SECRET}-helm"
    assert release.own.objects("certificates.cert-manager.io,issuers.cert-manager.io") == []
    assert trusted(release, webhook)  # the old pods go on until the new ones are ready
    made = release.certificate()
    served_with(webhook, made)
    assert trusted(release, webhook)
    release.install(webhook.port, cert_manager=False)
    assert (release.mounted(), release.certificate()) == (f"{SECRET}-helm", made)
    assert trusted(release, webhook)

    release.install(webhook.port, cert_manager=True)
    assert release.mounted() == SECRET
    assert release.own.get("secret", f"{SECRET}-helm") is None
    assert not trusted(release, webhook)  # until cert-manager's injector has seen it
    release.inject(authority.credentials.certificate)
    served_with(webhook, release.certificate())
    assert trusted(release, webhook)
    assert webhook.process.poll() is None
    release.uninstall()


def test_a_secret_that_helm_made_goes_when_cert_manager_takes_over(
    server: ApiServer, checked: Namespace, webhook: Webhook
) -> None:
    """The same name then belongs to cert-manager, which makes the Secret anew; and back again."""
    foreign_kinds(server)
    release = Release(server, checked)
    release.install(webhook.port)
    assert release.mounted() == SECRET
    release.install(webhook.port, cert_manager=True)
    assert release.mounted() == SECRET
    assert release.own.get("secret", SECRET) is None
    issue(release, Authority.create("cert-manager"))
    release.install(webhook.port)
    assert release.mounted() == f"{SECRET}-helm"
    release.uninstall()
