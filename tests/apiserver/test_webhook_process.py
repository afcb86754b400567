"""The webhook as a process, called by a real API server (spec: control-plane 13 and 15)."""

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from lab.apiserver import ApiServer
from lab.certificates import Authority
from tests.support.apiserver import kubectl
from tests.support.charts import CHARTS
from tests.support.manager import Namespace, config_map, controller, eventually, ours
from tests.support.webhook import Registration, Webhook, grant, send, validating

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(180)]

VALIDATING = "ValidatingWebhookConfiguration"


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> ApiServer:
    folder = CHARTS / "slurm-operator-crds" / "templates"
    kubectl(api_server, "apply", "--server-side", "--force-conflicts", "-f", str(folder))
    kubectl(api_server, "wait", "--for=condition=Established", "--timeout=30s", "-f", str(folder))
    grant(api_server)
    return api_server


@pytest.fixture
def space(server: ApiServer) -> Namespace:
    return Namespace(server)


@pytest.fixture(scope="module")
def running(server: ApiServer) -> Iterator[Webhook]:
    with Webhook(server) as webhook:
        yield webhook.start()


@pytest.fixture
def webhook(server: ApiServer, space: Namespace, running: Webhook) -> Iterator[Webhook]:
    """A webhook that checks what happens in the test's namespace."""
    with Registration(server, VALIDATING, f"v-{space.name}") as registration:
        registration.apply(validating(running, space))
        wait_asked(server, space)
        yield running


def wait_asked(server: ApiServer, space: Namespace) -> None:
    """The API server takes a moment to see a registration."""
    probe = nodeset("probe", controllerRef={"name": ""})
    eventually(lambda: "must be set" in send(server, space, probe, "--dry-run=server")[1], what="it is asked")


def nodeset(name: str, **spec: Any) -> dict[str, Any]:
    given = {
        "controllerRef": {"name": "alba"},
        "slurmd": {"image": "registry.example/slurmd:1"},
        "logfile": {"image": "registry.example/tools:1"},
    }
    return ours("NodeSet", name, **{**given, **spec})


def test_a_refusal_names_all_that_is_wrong_and_a_good_object_passes_in_silence(
    server: ApiServer, space: Namespace, webhook: Webhook
) -> None:
    bad = nodeset("gpu", controllerRef={"name": ""}, extraConf="Weight=5 spare")
    code, said = send(server, space, bad)
    assert code != 0
    assert 'admission webhook "nodeset-v1beta1.kb.io" denied the request: [' in said
    assert (
        "spec.controllerRef.name: must be set, spec.extraConf: 'spare' is not of the form Key=Value" in said
    )
    assert send(server, space, nodeset("gpu")) == (0, "nodeset.slinky.slurm.net/gpu created\n")
    path = "/validate-slinky-slurm-net-v1beta1-nodeset"
    assert f'controller_runtime_webhook_requests_total{{code="200",webhook="{path}"}}' in webhook.metrics()
    assert f'controller_runtime_webhook_latency_seconds_count{{webhook="{path}"}}' in webhook.metrics()
    assert f'controller_runtime_webhook_requests_in_flight{{webhook="{path}"}} 0.0' in webhook.metrics()


@pytest.mark.usefixtures("webhook")
def test_warnings_reach_the_client_with_either_verdict(server: ApiServer, space: Namespace) -> None:
    """Field case INJ-04, and overrides that do nothing (OVR)."""
    spec = {
        "controllerRef": {"name": "alba"},
        "sssdConfRef": {"name": "sssd", "key": "sssd.conf"},
        "login": {"image": "registry.example/login:1", "securityContext": {"privileged": False}},
        "initconf": {"image": "registry.example/tools:1"},
        "service": {"spec": {"externalIPs": ["192.0.2.53"]}},
    }
    code, said = send(server, space, ours("LoginSet", "login", **spec))
    assert code == 0
    assert "Warning: spec.service.spec.externalIPs: is ignored" in said
    assert "Warning: spec.login.securityContext.privileged: false has no effect" in said
    code, said = send(server, space, ours("LoginSet", "login", **{**spec, "controllerRef": {"name": "b"}}))
    assert code != 0
    assert "Warning: spec.service.spec.externalIPs: is ignored" in said
    assert "spec.controllerRef.name: cannot be changed; it is 'alba', not 'b'" in said


@pytest.mark.usefixtures("webhook")
def test_an_object_that_cannot_be_read_is_answered_with_400(server: ApiServer, space: Namespace) -> None:
    slurmd = {"image": "registry.example/slurmd:1", "resources": {"limits": {"cpu": "four"}}}
    code, said = send(server, space, nodeset("gpu", slurmd=slurmd))
    assert code != 0
    assert "(BadRequest)" in said
    assert "spec.slurmd.resources.limits.cpu: " in said


@pytest.mark.usefixtures("webhook")
def test_config_maps_are_read_when_a_controller_is_checked(server: ApiServer, space: Namespace) -> None:
    wanted = controller("alba", configFileRefs=[{"name": "files"}])
    code, said = send(server, space, wanted)
    assert code != 0
    assert "spec.configFileRefs[0]: ConfigMap 'files' cannot be read" in said
    space.apply(config_map("files", {"gres.conf": "", "mine.conf": ""}))
    code, said = send(server, space, wanted)
    assert code == 0
    assert "has the key mine.conf, which Slurm ignores unless another file includes it" in said
    assert "gres.conf" not in said
    space.apply(config_map("files", {"slurm.conf": ""}))
    wanted["spec"]["extraConf"] = "PriorityType=priority/basic"
    code, said = send(server, space, wanted)
    assert code != 0
    assert "has the key slurm.conf, a file that the operator writes" in said
    code, _ = send(server, space, {**wanted, "spec": {**wanted["spec"], "configFileRefs": []}})
    assert code == 0


@pytest.mark.usefixtures("webhook")
def test_a_backup_controller_needs_a_claim_for_several_writers(server: ApiServer, space: Namespace) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "state"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    persistence = {"enabled": True, "existingClaim": "state"}
    wanted = controller("alba", ha={"enabled": True}, persistence=persistence)
    assert send(server, space, wanted, "--dry-run=server")[0] == 0
    space.apply(claim)
    code, said = send(server, space, wanted)
    assert code != 0
    assert "PersistentVolumeClaim state needs access mode ReadWriteMany" in said


def test_labels_and_finalizers_change_whatever_the_spec_says(
    server: ApiServer, space: Namespace, webhook: Webhook
) -> None:
    """An object that was stored before a rule came can still be labelled, finalized and deleted."""
    with Registration(server, VALIDATING, f"v-{space.name}") as registration:
        registration.apply([])
        bad = nodeset("gpu", extraConf="spare")
        eventually(lambda: send(server, space, bad)[0] == 0, what="no webhook is asked")
        space.kubectl(
            "patch", "nodeset", "gpu", "--type=merge", "-p", '{"metadata":{"finalizers":["x.y/z"]}}'
        )
        registration.apply(validating(webhook, space))
        wait_asked(server, space)
        space.kubectl("label", "nodeset", "gpu", "a=b")
        space.kubectl("delete", "nodeset", "gpu", "--wait=false")
        space.kubectl("patch", "nodeset", "gpu", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        assert space.get("nodeset", "gpu") is None


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_both_versions_of_reviews_are_answered(server: ApiServer, space: Namespace, version: str) -> None:
    with Webhook(server) as webhook, Registration(server, VALIDATING, f"v-{space.name}") as registration:
        webhook.start()
        registration.apply(validating(webhook, space, version))
        wait_asked(server, space)
        assert send(server, space, nodeset("gpu"))[0] == 0


def test_a_new_certificate_is_served_without_a_restart(server: ApiServer, space: Namespace) -> None:
    """Another authority signs; the registration follows it, as cert-manager's injector and Helm do."""
    with Webhook(server) as webhook, Registration(server, VALIDATING, f"v-{space.name}") as registration:
        webhook.start()
        registration.apply(validating(webhook, space))
        wait_asked(server, space)
        before = _serial(webhook)
        webhook.certify()
        eventually(lambda: _serial(webhook) != before, what="the new certificate is served")
        assert send(server, space, nodeset("one"))[0] == 0
        webhook.authority = Authority.create("another")
        registration.apply(validating(webhook, space))
        webhook.certify()
        eventually(lambda: send(server, space, nodeset("two"))[0] == 0, what="both follow")
        assert webhook.process.poll() is None
        assert "certwatcher_read_certificate_total 3.0" in webhook.metrics()
        assert "certwatcher_read_certificate_errors_total 0.0" in webhook.metrics()


def _serial(webhook: Webhook) -> bytes:
    """What is served to a new connection."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", webhook.port), timeout=5) as plain,
        context.wrap_socket(plain) as secure,
    ):
        return secure.getpeercert(binary_form=True) or b""


def test_it_is_ready_only_once_it_has_a_certificate_and_stops_being_so_before_it_ends(
    server: ApiServer,
) -> None:
    """Field case WHK-04: a pod that starts with an empty Secret picks up the certificate when it comes."""
    with Webhook(server) as webhook:
        eventually(lambda: webhook.status(webhook.health_port, "/healthz") == 200, what="it lives")
        assert webhook.status(webhook.health_port, "/readyz") == 503
        webhook.start()
        webhook.process.send_signal(signal.SIGTERM)
        eventually(lambda: webhook.status(webhook.health_port, "/readyz") == 503, what="it is not ready")
        assert _serial(webhook)
        assert webhook.process.wait(20) == 0


def test_the_lease_is_held_and_given_back(server: ApiServer, space: Namespace) -> None:
    with Webhook(server, "--leader-elect", f"--leader-elect-namespace={space.name}") as webhook:

        def holder() -> str:
            lease = space.get("lease", "slurm-operator-webhook") or {}
            return lease.get("spec", {}).get("holderIdentity") or ""

        eventually(holder, what="the lease is held")
        assert 'leader_election_master_status{name="slurm-operator-webhook"} 1.0' in webhook.metrics()
        assert webhook.end(signal.SIGTERM) == 0
        assert holder() == ""


@pytest.mark.parametrize(
    ("flags", "code", "complaint"),
    [
        (["--no-such-flag"], 2, "unknown flag --no-such-flag"),
        (["--server-addr=0"], 1, "write host:port or :port"),
        (["--server-addr=:https"], 2, "--server-addr: ':https' is not an address"),
        (["--kubeconfig=/no/such/file"], 1, "/no/such/file"),
    ],
)
def test_what_it_cannot_start_with_is_told(
    api_server: ApiServer, flags: list[str], code: int, complaint: str
) -> None:
    command = [
        *(sys.executable, "-m", "coil.service.webhook", f"--kubeconfig={api_server.kubeconfig}"),
        *("--health-addr=127.0.0.1:0", *flags),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == code
    assert complaint in done.stderr


def test_every_answer_is_a_review_of_the_version_that_asked(running: Webhook) -> None:
    """Straight to the socket: what the API server does not show (spec: control-plane 22)."""
    for version in ("admission.k8s.io/v1", "admission.k8s.io/v1beta1"):
        request = {"uid": "u-1", "operation": "CREATE", "namespace": "ns", "object": nodeset("gpu")}
        review = {"apiVersion": version, "kind": "AdmissionReview", "request": request}
        status, body = _post(running, json.dumps(review).encode())
        answer = json.loads(body)
        assert (status, answer["apiVersion"], answer["kind"]) == (200, version, "AdmissionReview")
        assert answer["response"] == {"uid": "u-1", "allowed": True, "status": {"code": 200}}
    assert _post(running, b"{}")[0] == 400
    assert _post(running, b"{}", "text/plain")[0] == 415
    assert _post(running, b" " * (7 * 1024 * 1024 + 1))[0] == 413


def _post(webhook: Webhook, body: bytes, content_type: str = "application/json") -> tuple[int, bytes]:
    context = ssl.create_default_context(cadata=webhook.authority.credentials.certificate.decode())
    connection = http.client.HTTPSConnection("127.0.0.1", webhook.port, timeout=10, context=context)
    path = "/validate-slinky-slurm-net-v1beta1-nodeset"
    connection.request("POST", path, body, {"Content-Type": content_type})
    reply = connection.getresponse()
    try:
        return reply.status, reply.read()
    finally:
        connection.close()
