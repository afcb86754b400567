"""Helm's certificate is renewed, with the chart's rights, while the API server asks all the time."""

import base64
import datetime as dt
import json
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from coil.admission.pki import LIFETIME, issue
from lab.apiserver import ApiServer
from lab.certificates import Credentials
from tests.support.apiserver import kubectl
from tests.support.manager import Namespace, controller, eventually
from tests.support.rights import may
from tests.support.site import Release
from tests.support.webhook import Webhook, send

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(180)]

VALUES = ("operator.enabled=false", "certManager.enabled=false", "webhook.namespaces=nowhere")
CONFIGURATION = "validatingwebhookconfiguration"
SECRET = "slurm-operator-webhook-ca"
KUBELET_S = 2.0


@pytest.fixture
def release(managed_server: ApiServer) -> Iterator[Release]:
    with Release(managed_server, "slurm-operator", "", *VALUES) as release:
        yield release


@pytest.fixture
def space(managed_server: ApiServer) -> Namespace:
    return Namespace(managed_server)


def nearly_over(release: Release) -> bytes:
    """Give the release a certificate whose last month has begun; its authority."""
    old = issue(["localhost"], dt.datetime.now(dt.UTC) - LIFETIME + dt.timedelta(days=30))
    data = {"tls.crt": old.certificate, "tls.key": old.key, "ca.crt": old.authority}
    text = json.dumps({"data": {key: base64.b64encode(value).decode() for key, value in data.items()}})
    release.space.kubectl("patch", "secret", SECRET, "--type=merge", "-p", text)
    return old.authority


def registered(server: ApiServer, name: str) -> dict[str, Any]:
    return json.loads(kubectl(server, "get", CONFIGURATION, name, "-o", "json"))


def call_here(server: ApiServer, name: str, webhook: Webhook, space: Namespace, authority: bytes) -> None:
    """Let the chart's registration ask this process, about one namespace."""
    bundle = base64.b64encode(authority).decode()
    found = registered(server, name)
    for hook in found["webhooks"]:
        url = f"https://localhost:{webhook.port}{hook['clientConfig']['service']['path']}"
        hook["clientConfig"] = {"url": url, "caBundle": bundle}
        hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": space.name}}
    kubectl(server, "replace", "-f", "-", stdin=json.dumps(found))


def pair(release: Release) -> Credentials:
    data = (release.space.get("secret", SECRET) or {})["data"]
    return Credentials(*(base64.b64decode(data[key]) for key in ("tls.crt", "tls.key")))


@contextmanager
def kubelet(release: Release, webhook: Webhook) -> Generator[None]:
    """Hand new pairs to the process, a little late."""
    done = threading.Event()

    def work() -> None:
        written: Credentials | None = None
        while not done.wait(KUBELET_S):
            if (found := pair(release)) != written:
                webhook.write(found)
                written = found

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_it_is_renewed_and_no_question_fails(
    managed_server: ApiServer, release: Release, space: Namespace
) -> None:
    authority = nearly_over(release)
    before = pair(release)
    flags = flags_of_chart(release)
    name = flags[flags.index("--registration") + 1]
    assert not may(managed_server, release.webhook_account, [f"get secrets {release.space.name}"])
    bad = controller("alba", configFileRefs=[{"name": "none-such"}])
    with Webhook(managed_server, *flags, account=release.webhook_account) as webhook:
        call_here(managed_server, name, webhook, space, authority)
        webhook.write(before)
        with kubelet(release, webhook):
            eventually(
                lambda: "denied the request" in send(managed_server, space, bad, "--dry-run=server")[1],
                what="it is asked",
            )
            asked, until = 0, time.monotonic() + 60
            while webhook_serves(webhook) == before.certificate or asked < 20:
                assert time.monotonic() < until, webhook.entries()[-5:]
                said = send(managed_server, space, bad, "--dry-run=server")[1]
                assert "denied the request" in said, said
                asked += 1
    assert pair(release).certificate != before.certificate
    kept = (release.space.get("secret", SECRET) or {})["data"]
    assert sorted(kept) == ["ca.crt", "tls.crt", "tls.key"]

    assert bundles(managed_server, name) == {kept["ca.crt"]}

    kubectl(managed_server, "delete", CONFIGURATION, name)
    release.upgrade()
    assert (release.space.get("secret", SECRET) or {})["data"] == kept
    assert bundles(managed_server, name) == {kept["ca.crt"]}


def bundles(server: ApiServer, name: str) -> set[str]:
    """What the webhooks of the registration trust."""
    return {hook["clientConfig"]["caBundle"] for hook in registered(server, name)["webhooks"]}


def flags_of_chart(release: Release) -> list[str]:
    """Those of its Deployment that say which certificate is renewed, and where."""
    deployment = release.space.get("deployment", "slurm-operator-webhook") or {}
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    arguments = container["args"]
    wanted = ("--leader-elect-namespace", "--renew-certificate", "--registration")
    return [word for flag in wanted for word in (flag, arguments[arguments.index(flag) + 1])]


def webhook_serves(webhook: Webhook) -> bytes:
    """The pair that the process has read last."""
    return (webhook.certificates / "tls.crt").read_bytes()
