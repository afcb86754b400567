"""What the service accounts of the operator's chart may do, and above all what they may not.

Asked of the API server's own authorizer, and by programs that work as these accounts.
"""

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator

import pytest

from lab.apiserver import ApiServer
from tests.support.apiserver import writes
from tests.support.manager import (
    KEYS,
    Namespace,
    config_map,
    controller,
    eventually,
    scrape,
)
from tests.support.rights import Account, may
from tests.support.site import Release, Working, forbidden
from tests.support.webhook import Registration, Webhook, attempt, binding, send, validating

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(180)]

NO_WEBHOOK = ("webhook.enabled=false", "certManager.enabled=false")
OWN_CERTIFICATE = ("operator.enabled=false", "certManager.enabled=false", "webhook.namespaces=nowhere")

NOBODYS = """
create roles.rbac.authorization.k8s.io {here}
escalate roles.rbac.authorization.k8s.io {here}
bind clusterroles.rbac.authorization.k8s.io *
create rolebindings.rbac.authorization.k8s.io {here}
create clusterrolebindings.rbac.authorization.k8s.io *
patch clusterroles.rbac.authorization.k8s.io *
create pods/exec {here}
get pods/exec {here}
create pods/attach {here}
create pods/portforward {here}
update pods/ephemeralcontainers {here}
get pods/log {here}
get pods/proxy {here}
create serviceaccounts/token {here}
impersonate users *
impersonate serviceaccounts {here}
patch nodes *
delete nodes *
get nodes/proxy *
list namespaces *
create namespaces *
delete namespaces *
patch validatingwebhookconfigurations.admissionregistration.k8s.io *
patch mutatingwebhookconfigurations.admissionregistration.k8s.io *
patch customresourcedefinitions.apiextensions.k8s.io *
approve certificatesigningrequests.certificates.k8s.io *
delete networkpolicies.networking.k8s.io {here}
delete persistentvolumes *
create daemonsets.apps {here}
get /metrics *
get /logs *
"""
"""Requests that no account of ours may make."""


def table(text: str, **names: str) -> list[str]:
    """The requests of a table."""
    return [line.format(**names) for line in text.strip().splitlines()]


def refused(server: ApiServer, account: Account, requests: list[str]) -> list[str]:
    allowed = may(server, account, requests)
    return [request for request in requests if request not in allowed]


@pytest.fixture
def spaces(managed_server: ApiServer) -> tuple[Namespace, Namespace]:
    return Namespace(managed_server), Namespace(managed_server)


INSIDE = """
get secrets {here}
watch secrets {here}
create pods {here}
delete pods {here}
patch pods/status {here}
patch statefulsets.apps {here}
update secrets/finalizers {here}
patch nodesets.slinky.slurm.net {here}
patch nodesets.slinky.slurm.net/status {here}
update controllers.slinky.slurm.net/finalizers {here}
create events.events.k8s.io {here}
delete persistentvolumeclaims {here}
"""
OUTSIDE = """
get secrets {there}
list secrets {there}
list secrets *
get secrets kube-system
create pods {there}
delete pods {there}
list pods *
get configmaps {there}
patch nodesets.slinky.slurm.net {there}
list nodesets.slinky.slurm.net *
update leases.coordination.k8s.io kube-node-lease
update leases.coordination.k8s.io {there}
"""


def test_an_operator_with_namespaced_roles_may_do_nothing_elsewhere(
    managed_server: ApiServer, spaces: tuple[Namespace, Namespace]
) -> None:
    here, there = (space.name for space in spaces)
    values = (*NO_WEBHOOK, "operator.namespacedRoles=true", f"operator.namespaces={here}")
    with Release(managed_server, "slurm-operator", "", *values) as release:
        needed = [*table(INSIDE, here=here), "list nodes *", "create tokenreviews.authentication.k8s.io *"]
        needed += ["create subjectaccessreviews.authorization.k8s.io *"]
        needed.append(f"update leases.coordination.k8s.io {release.space.name}")
        wrong = [*table(OUTSIDE, there=there), *table(NOBODYS, here=here)]
        assert refused(managed_server, release.account, needed) == []
        assert refused(managed_server, release.account, wrong) == wrong


def test_an_operator_of_the_whole_cluster_has_no_power_over_the_cluster(
    managed_server: ApiServer, spaces: tuple[Namespace, Namespace]
) -> None:
    here, there = (space.name for space in spaces)
    with Release(managed_server, "slurm-operator", "", *NO_WEBHOOK) as release:
        needed = [*table(INSIDE, here=here), *table(INSIDE, here=there), "list nodes *", "list secrets *"]
        wrong = table(NOBODYS, here=here)
        assert refused(managed_server, release.account, needed) == []
        assert refused(managed_server, release.account, wrong) == wrong


def test_two_operators_see_only_their_own_namespaces(
    managed_server: ApiServer, spaces: tuple[Namespace, Namespace]
) -> None:
    """Each works under the roles of its own release, and is refused nothing."""
    first, second = spaces
    for space in spaces:
        space.apply(KEYS)

    def release(space: Namespace) -> Release:
        values = (*NO_WEBHOOK, "operator.namespacedRoles=true", f"operator.namespaces={space.name}")
        return Release(managed_server, "slurm-operator", "", *values)

    with release(first) as one, Working(one, namespaces=(first.name,)) as manager:
        manager.wait_working()
        for space in spaces:
            space.apply(controller("alba"))
        first.wait_condition("controller", "alba", "Reconciled=True")
        with release(second) as two, Working(two, namespaces=(second.name,)) as another:
            second.wait_condition("controller", "alba", "Reconciled=True", within=60)
            for running, own, other in ((manager, first, second), (another, second, first)):
                done = running.writes()
                assert any(f"/namespaces/{own.name}/" in line for line in done)
                assert [line for line in done if f"/namespaces/{other.name}/" in line] == []
                assert forbidden(running.get(running.metrics_port, "/metrics")) == []


WEBHOOK = """
get configmaps {here}
get persistentvolumeclaims {here}
"""
BINDING = """
get pods {here}
patch pods {here}
get nodes *
"""
REVIEWS = """
create tokenreviews.authentication.k8s.io *
create subjectaccessreviews.authorization.k8s.io *
"""
NOT_WEBHOOK = """
get secrets {here}
list secrets *
list configmaps {here}
patch configmaps {here}
list persistentvolumeclaims {here}
list pods {here}
create pods {here}
update pods {here}
delete pods {here}
create pods/binding {here}
create nodesets.slinky.slurm.net {here}
update nodesets.slinky.slurm.net {here}
delete controllers.slinky.slurm.net {here}
get nodesets.slinky.slurm.net {here}
create events {here}
list nodes *
update leases.coordination.k8s.io {here}
update leases.coordination.k8s.io kube-node-lease
"""


@pytest.mark.parametrize("more", [False, True], ids=["plain", "binding-and-secure-metrics"])
def test_the_webhook_may_read_only_what_its_rules_need(
    managed_server: ApiServer, spaces: tuple[Namespace, Namespace], *, more: bool
) -> None:
    here = spaces[0].name
    extra = ("webhook.podsBinding=true", "webhook.metricsSecure=true", "webhook.metricsPort=8080")
    with Release(managed_server, "slurm-operator", "", *OWN_CERTIFICATE, *(extra if more else ())) as release:
        needed, optional = table(WEBHOOK, here=here), table(BINDING + REVIEWS.lstrip(), here=here)
        needed.append(f"update leases.coordination.k8s.io {release.space.name}")
        wrong = [*table(NOT_WEBHOOK, here=here), *table(NOBODYS, here=here)]
        needed, wrong = (needed + optional, wrong) if more else (needed, wrong + optional)
        assert refused(managed_server, release.webhook_account, needed) == []
        assert refused(managed_server, release.webhook_account, wrong) == wrong


@pytest.fixture
def hook(managed_server: ApiServer) -> Iterator[tuple[Release, Webhook]]:
    """A webhook that works as the account of its chart, with all that can be turned on."""
    extra = ("webhook.podsBinding=true", "webhook.metricsSecure=true", "webhook.metricsPort=8080")
    with Release(managed_server, "slurm-operator", "", *OWN_CERTIFICATE, *extra) as release:
        flags = ("--metrics-secure", "--leader-elect", f"--leader-elect-namespace={release.space.name}")
        with Webhook(managed_server, *flags, account=release.webhook_account) as webhook:
            yield release, webhook.start()


def reader(release: Release, bound: str) -> Callable[[str], str]:
    """Tokens of accounts, of which `bound` has the role that the chart offers to scrapers."""
    space = release.space
    for name in (bound, "stranger"):
        space.kubectl("create", "serviceaccount", name)
    role = f"--clusterrole={release.name}-slurm-operator-metrics-reader"
    account = f"--serviceaccount={space.name}:{bound}"
    space.kubectl("create", "clusterrolebinding", f"{space.name}-metrics", role, account)
    return lambda name: Account(space.name, name).token(release.server)


def check_secure(port: int, token: Callable[[str], str], series: str) -> None:
    """Metrics are for those who hold the chart's role, and over TLS."""
    assert scrape(port, None)[0] == 401
    assert scrape(port, "no-token")[0] == 401
    assert scrape(port, token("stranger"))[0] == 403
    code, text = scrape(port, token("prometheus"))
    assert (code, series in text) == (200, True)
    with pytest.raises((http.client.HTTPException, OSError)):
        ask_without_tls(port, token("prometheus"))


def ask_without_tls(port: int, token: str) -> None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
        connection.getresponse()


def test_the_webhook_works_with_these_rights(
    managed_server: ApiServer, spaces: tuple[Namespace, Namespace], hook: tuple[Release, Webhook]
) -> None:
    """Reads for its rules, the topology of a bound worker, its Lease, reviews of who scrapes it."""
    server, (space, _), (release, webhook) = managed_server, spaces, hook
    machine, topology = f"{space.name}-node", {"topology.slinky.slurm.net/spec": "block:b1"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": machine, "annotations": topology}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    space.apply(
        node,
        config_map("files", {"slurm.conf": ""}),
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "state"}, "spec": claim},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "w", "labels": {"app.kubernetes.io/name": "slurmd"}},
            "spec": {"containers": [{"name": "main", "image": "registry.example/any:1"}]},
        },
    )
    shared = {"enabled": True, "existingClaim": "state"}
    bad = controller("alba", configFileRefs=[{"name": "files"}], ha={"enabled": True}, persistence=shared)
    with (
        Registration(server, "ValidatingWebhookConfiguration", f"v-{space.name}") as checks,
        Registration(server, "MutatingWebhookConfiguration", f"m-{space.name}") as bindings,
    ):
        checks.apply(validating(webhook, space))
        bindings.apply(binding(webhook, space))
        eventually(lambda: "denied" in send(server, space, bad, "--dry-run=server")[1], what="it is asked")
        said = send(server, space, bad)[1]
        assert "needs access mode ReadWriteMany" in said
        assert "has the key slurm.conf, a file that the operator writes" in said
        bind(server, space, machine)
        pod = space.get("pod", "w") or {}
        assert pod["metadata"]["annotations"] == topology
    eventually(lambda: release.space.get("lease", "slurm-operator-webhook"), what="the Lease is held")
    token = reader(release, "prometheus")
    check_secure(webhook.metrics_port, token, "controller_runtime_webhook_requests_total")
    assert forbidden(scrape(webhook.metrics_port, token("prometheus"))[1]) == []


def bind(server: ApiServer, space: Namespace, machine: str) -> None:
    """Bind the pod `w`, as the scheduler would."""
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "w"}, "target": {"name": machine}}
    path = f"/api/v1/namespaces/{space.name}/pods/w/binding"
    code, said = attempt(server, "create", "--raw", path, "-f", "-", stdin=json.dumps(body))
    assert code == 0, said


def test_secure_metrics_of_the_operator_are_for_holders_of_the_chart_s_role(
    managed_server: ApiServer, spaces: tuple[Namespace, Namespace]
) -> None:
    values = (*NO_WEBHOOK, "operator.metricsSecure=true")
    with (
        Release(managed_server, "slurm-operator", "", *values) as release,
        Working(release, "--metrics-secure", namespaces=(spaces[0].name,)) as manager,
    ):
        manager.wait_working()
        check_secure(manager.metrics_port, reader(release, "prometheus"), "workqueue_adds_total")
    assert [line for line in writes(managed_server, manager.user) if "tokenreviews" in line]
