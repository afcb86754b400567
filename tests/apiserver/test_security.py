"""Who may talk to whom, and which pod security level each pod meets, by the pods that are really made.

Both charts are installed, and the operator works as the service account that its chart made.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl
from tests.support.charts import ROOT, template
from tests.support.manager import Manager, Namespace, eventually, secret
from tests.support.networkpolicy import Network, Pod
from tests.support.site import Release, Working, forbidden, pods, say_ready
from tests.support.webhook import attempt

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(240)]

API_SERVER, DATABASE, ELSEWHERE = "192.0.2.1", "192.0.2.33", "198.51.100.7"
MONITORING = r"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name"
LEVEL = "pod-security.kubernetes.io/enforce"
CLUSTER = (
    "networkPolicy.enabled=true",
    f"{MONITORING}=monitoring",
    f"networkPolicy.databaseTo[0].ipBlock.cidr={DATABASE}/32",
    "accounting.enabled=true",
    "controller.inplaceReconfigure=true",
    "nodesets.cpu.replicas=1,nodesets.cpu.ssh.enabled=true,nodesets.gpu.replicas=1",
    "loginsets.main.replicas=1",
)
OPERATOR = (
    "networkPolicy.enabled=true",
    f"{MONITORING}=monitoring",
    f"networkPolicy.apiServer.peers[0].ipBlock.cidr={API_SERVER}/32",
    "certManager.enabled=false",
    "webhook.namespaces=nowhere",
    "operator.namespacedRoles=true",
)


@dataclass(frozen=True)
class Site:
    """A cluster and its operator, with a pod of each kind."""

    slurm: Release
    operator: Release
    manager: Manager
    pods: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    @property
    def policies(self) -> list[dict[str, Any]]:
        """As the API server stores them."""
        spaces = (self.slurm.space, self.operator.space)
        return [each for space in spaces for each in space.objects("networkpolicies")]


APPS = ("slurmctld", "slurmdbd", "slurmrestd", "login", "slurm-operator", "slurm-operator-webhook")


def all_pods(slurm: Release, operator: Release) -> dict[str, dict[str, Any]] | None:
    """A pod of each application by its name, workers by that of their set; None until all are there."""
    if (slurm.space.get("pod", "slurm-accounting-0") or {}).get("status", {}).get("phase") == "Pending":
        say_ready(slurm.space, "slurm-accounting-0")  # slurmctld waits for it
    found: dict[str, dict[str, Any]] = {}
    for pod in pods(slurm.server, slurm.space.name, operator.space.name):
        labels = pod["metadata"]["labels"]
        found[labels["app.kubernetes.io/name"]] = pod
        found[labels["app.kubernetes.io/instance"]] = pod
    wanted = {*APPS, "slurm-worker-cpu", "slurm-worker-gpu"}
    return found if wanted <= found.keys() else None


@pytest.fixture(scope="module")
def site(managed_server: ApiServer) -> Iterator[Site]:
    with Release(managed_server, "slurm", "slurm", *CLUSTER) as slurm:
        slurm.space.apply(secret("mariadb-password", password="a password"))
        namespaces = f"operator.namespaces={slurm.space.name}"
        with Release(managed_server, "slurm-operator", "", *OPERATOR, namespaces) as operator:
            watched = (slurm.space.name,)
            with Working(operator, namespaces=watched) as manager:
                made = eventually(lambda: all_pods(slurm, operator), within=120, what="a pod of each kind")
                yield Site(slurm, operator, manager, made)


def ends(site: Site) -> dict[str, Pod]:
    """Who may want to talk: the site's pods, and others."""
    here, there = site.slurm.space.name, site.operator.space.name
    own = {name: Pod.of(site.pods[name]) for name in APPS}
    own["worker"], own["gpu"] = (Pod.of(site.pods[f"slurm-worker-{name}"]) for name in ("cpu", "gpu"))
    own["operator"], own["webhook"] = own["slurm-operator"], own["slurm-operator-webhook"]
    stranger = {"app.kubernetes.io/name": "web"}
    other = {**(own["worker"].labels or {}), "slinky.slurm.net/cluster": "other"}
    rendered = template("slurm-operator", release=site.operator.name, namespace=there)
    checks = {each["metadata"]["name"]: each for each in rendered if each["kind"] == "Pod"}
    return {
        **own,
        "neighbour": Pod(stranger, here),
        "stranger": Pod(stranger, "default"),
        "other-cluster": Pod(other, here),
        "impostor": Pod(own["worker"].labels, "default"),
        "prometheus": Pod(stranger, "monitoring"),
        "dns": Pod({"k8s-app": "kube-dns"}, "kube-system"),
        "api": Pod(address=API_SERVER),
        "database": Pod(address=DATABASE),
        "elsewhere": Pod(address=ELSEWHERE),
        "check": Pod(checks["slurm-operator-test"]["metadata"]["labels"], there),
        "webhook-check": Pod(checks["slurm-operator-webhook-test"]["metadata"]["labels"], there),
        "cluster-check": Pod(_test_pod(site)["metadata"]["labels"], here),
    }


def _test_pod(site: Site) -> dict[str, Any]:
    documents = template("slurm", release=site.slurm.name, namespace=site.slurm.space.name)
    (pod,) = [document for document in documents if document["kind"] == "Pod"]
    return pod


NEEDED = """
slurmctld   -> slurmctld:6817       a backup asks the one in charge
slurmdbd    -> slurmctld:6817       changes of accounts are pushed
slurmrestd  -> slurmctld:6817
worker      -> slurmctld:6817       registration, configuration, job steps
login       -> slurmctld:6817       sbatch, squeue, sackd
prometheus  -> slurmctld:6817
slurmctld   -> slurmdbd:6819
slurmrestd  -> slurmdbd:6819
worker      -> slurmdbd:6819        sacct in a job
login       -> slurmdbd:6819        sacct
slurmdbd    -> database:3306
operator    -> slurmrestd:6820
operator    -> slurmctld:6817   which is active
slurmctld   -> worker:6818          launch, ping, reconfigure
slurmctld   -> gpu:6818
login       -> worker:6818          srun launches steps
worker      -> gpu:6818             messages go down a tree; srun in a job
gpu         -> worker:40000         MPI
worker      -> login:40000          output of srun
slurmctld   -> login:40000          salloc and srun hear of their allocation
slurmctld   -> login:6818           sackd hears of a new configuration
slurmctld   -> worker:40000         srun in a job
login       -> worker:22            login to the machine of one's job
elsewhere   -> login:22
worker      -> elsewhere:443        jobs go where they like
login       -> elsewhere:636        the directory
slurmctld   -> dns:53/UDP
slurmdbd    -> dns:53/UDP
slurmrestd  -> dns:53/TCP
worker      -> dns:53/UDP
operator    -> dns:53/UDP
webhook     -> dns:53/UDP
operator    -> api:6443
webhook     -> api:6443
api         -> webhook:9443
prometheus  -> operator:8080
check       -> operator:8081        helm test
webhook-check -> webhook:8081
cluster-check -> slurmctld:6817
cluster-check -> worker:6818
worker      -> cluster-check:40000  the job's output
"""
UNNEEDED = """
neighbour   -> slurmctld:6817
neighbour   -> slurmdbd:6819
neighbour   -> slurmrestd:6820
neighbour   -> worker:6818
neighbour   -> worker:22
neighbour   -> login:40000
stranger    -> slurmctld:6817
stranger    -> slurmdbd:6819
stranger    -> slurmrestd:6820
stranger    -> worker:6818
stranger    -> worker:40000
stranger    -> login:6818
impostor    -> slurmctld:6817       the labels of a worker, in another namespace
impostor    -> slurmdbd:6819
impostor    -> worker:6818
other-cluster -> slurmctld:6817     a worker of another cluster in the same namespace
other-cluster -> slurmdbd:6819
other-cluster -> worker:40000
elsewhere   -> slurmctld:6817
elsewhere   -> slurmdbd:6819
elsewhere   -> worker:22
elsewhere   -> slurmrestd:6820
worker      -> slurmrestd:6820
login       -> slurmrestd:6820
slurmctld   -> slurmrestd:6820
prometheus  -> slurmdbd:6819
prometheus  -> slurmrestd:6820
prometheus  -> worker:6818
operator    -> slurmdbd:6819
operator    -> worker:6818
operator    -> elsewhere:443
webhook     -> slurmrestd:6820
webhook     -> elsewhere:443
slurmctld   -> database:3306
slurmctld   -> elsewhere:443
slurmctld   -> worker:22
slurmctld   -> login:22             nobody logs in from there
slurmdbd    -> worker:6818
slurmdbd    -> elsewhere:443
slurmdbd    -> elsewhere:3306
slurmrestd  -> worker:6818
slurmrestd  -> database:3306
slurmrestd  -> elsewhere:443
login       -> worker:8888
worker      -> login:80
slurmdbd    -> login:40000
stranger    -> operator:8080
stranger    -> operator:8081
stranger    -> webhook:9443
elsewhere   -> webhook:9443
check       -> webhook:8081
cluster-check -> slurmrestd:6820
cluster-check -> worker:22
"""


def allowed(site: Site, table: str) -> dict[str, bool]:
    """Each flow of a table, and whether it is allowed."""
    network, known = Network(site.policies), ends(site)
    answers: dict[str, bool] = {}
    for line in table.strip().splitlines():
        source, _, target = line.split()[:3]
        name, _, wanted = target.partition(":")
        port, _, protocol = wanted.partition("/")
        answers[f"{source} -> {target}"] = network.allows(
            known[source], known[name], int(port), protocol or "TCP"
        )
    return answers


def test_policies_allow_what_is_needed_and_refuse_the_rest(site: Site) -> None:
    """The lab's network enforces no policies: they are read instead, with the labels of real pods."""
    assert len(site.policies) == 7
    assert [flow for flow, may in allowed(site, NEEDED).items() if not may] == []
    assert [flow for flow, may in allowed(site, UNNEEDED).items() if may] == []


def test_policies_are_taken_by_a_strict_api_server(site: Site) -> None:
    for release in (site.slurm, site.operator):
        sets = [word for value in release.values for word in ("--set", value)]
        made = template(release.chart, *sets, release=release.name, namespace=release.space.name)
        policies = [each for each in made if each["kind"] == "NetworkPolicy"]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": policies})
        strictly = ("apply", "--validate=strict", "--dry-run=server", "-f", "-")
        assert kubectl(release.server, *strictly, stdin=text).count("server dry run") == len(policies)


def test_the_operator_needs_no_right_that_its_namespaced_roles_lack(site: Site) -> None:
    """It made all these objects as the chart's service account, and was refused nothing.

    Field case NSP-06: the API server also asks for the rights that owner references need.
    """
    for kind in ("controller", "accounting", "restapi"):
        site.slurm.space.wait_condition(kind, "slurm", "Reconciled=True")
    site.slurm.space.wait_condition("loginset", "slurm-login-main", "Reconciled=True")
    assert site.manager.writes()
    assert forbidden(site.manager.get(site.manager.metrics_port, "/metrics")) == []


LEVELS = {
    "slurmctld": "baseline",
    "slurmdbd": "baseline",
    "slurmrestd": "baseline",
    "login": "baseline",
    "slurm-worker-cpu": "privileged",
    "slurm-operator": "baseline",
    "slurm-operator-webhook": "baseline",
}
"""The strictest level that admits each pod; docs/security.md has the same table."""


def violations(server: ApiServer, space: Namespace, pod: dict[str, Any]) -> str:
    """What the pod security admission says to such a pod; empty when it is admitted."""
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "tried", "namespace": space.name},
        "spec": {"containers": pod["spec"]["containers"], **without_placement(pod["spec"])},
    }
    code, said = attempt(server, "create", "--dry-run=server", "-f", "-", stdin=json.dumps(document))
    assert code == 0 or "violates PodSecurity" in said, said
    return "" if code == 0 else said


def without_placement(spec: dict[str, Any]) -> dict[str, Any]:
    """What of a pod's spec another namespace takes as well."""
    return {key: value for key, value in spec.items() if key not in ("serviceAccountName", "serviceAccount")}


@pytest.fixture(scope="module")
def strict(managed_server: ApiServer) -> dict[str, Namespace]:
    """A namespace for each level."""
    made = {level: Namespace(managed_server) for level in ("baseline", "restricted")}
    for level, space in made.items():
        kubectl(managed_server, "label", "namespace", space.name, f"{LEVEL}={level}")
    return made


def strictest(server: ApiServer, strict: dict[str, Namespace], pod: dict[str, Any]) -> str:
    admitting = [level for level, space in strict.items() if not violations(server, space, pod)]
    return admitting[-1] if admitting else "privileged"


def test_each_pod_meets_its_pod_security_level(site: Site, strict: dict[str, Namespace]) -> None:
    server = site.slurm.server
    assert {name: strictest(server, strict, site.pods[name]) for name in LEVELS} == LEVELS


def test_operator_and_webhook_meet_the_restricted_level_when_told_to(
    managed_server: ApiServer, strict: dict[str, Namespace]
) -> None:
    """With the values of docs/examples/restricted-operator-values.yaml."""
    example = ROOT / "docs" / "examples" / "restricted-operator-values.yaml"
    values = ("--values", str(example), "--set", "certManager.enabled=false")
    made = [each for each in template("slurm-operator", *values) if each["kind"] == "Deployment"]
    assert len(made) == 2
    for deployment in made:
        assert violations(managed_server, strict["restricted"], deployment["spec"]["template"]) == ""
