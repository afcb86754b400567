"""Where our charts differ from the reference's on purpose, one by one: what, why, and what is wanted then.

`docs/compatibility.md` lists the same for people.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.charts import Case, Document

POD_LABELS = ("helm.sh/chart", "app.kubernetes.io/version")
CLUSTER_SCOPED = ("ClusterRole", "ClusterRoleBinding")
OUR_IMAGES = {
    "registry.example/library/alpine:latest": "alpine:3.22",
    "registry.example/reference/slurm-operator:": "coil/slurm-operator:",
    "registry.example/reference/slurm-operator-webhook:": "coil/slurm-operator:",
    "registry.example/library/alpine": "alpine",
    ":26.05-ubuntu26.04": ":26.05",
    "registry.example/reference/": "coil/",
}


@dataclass(frozen=True)
class Deviation:
    """One difference on purpose."""

    name: str
    reason: str
    change: Callable[[Case, list[Document]], None]
    """Make the reference's documents what ours have to be, in place."""


def kinds(documents: list[Document], *names: str) -> list[Document]:
    return [document for document in documents if document["kind"] in names]


def texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text changed."""
    if isinstance(value, dict):
        return {key: texts(member, change) for key, member in value.items()}
    if isinstance(value, list):
        return [texts(member, change) for member in value]
    return change(value) if isinstance(value, str) else value


def own_images(_case: Case, documents: list[Document]) -> None:
    def ours(text: str) -> str:
        for theirs, our in OUR_IMAGES.items():
            text = text.replace(theirs, our)
        return text

    documents[:] = [texts(document, ours) for document in documents]


def pod_labels(case: Case, documents: list[Document]) -> None:
    user = case.values.read_text()
    for document in kinds(documents, "Controller", "RestApi", "Accounting", "LoginSet", "NodeSet"):
        labels = document["spec"].get("template", {}).get("metadata", {}).get("labels", {})
        for label in POD_LABELS:
            if label in labels and f"{label}: {labels[label]}" not in user:
                del labels[label]


def no_namespace(_case: Case, documents: list[Document]) -> None:
    for document in kinds(documents, *CLUSTER_SCOPED):
        document["metadata"].pop("namespace", None)


def service_selector(_case: Case, documents: list[Document]) -> None:
    for document in kinds(documents, "Service"):
        selector = document["spec"]["selector"]
        document["spec"]["selector"] = {
            key: value for key, value in selector.items() if key.endswith(("/name", "/instance"))
        }


def keep_keys(_case: Case, documents: list[Document]) -> None:
    for document in kinds(documents, "Secret"):
        if document.get("immutable"):
            document["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"


def own_webhook_names(case: Case, documents: list[Document]) -> None:
    release = case.header["release"]
    full = {
        "op": "op-slurm-operator",
        "mon": "mon-slurm-operator",
        "prod": "prod-batchop",
        "control": "hpc-operator",
    }
    for document in kinds(
        documents, *CLUSTER_SCOPED, "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
    ):
        if release in full and document["metadata"]["name"].endswith("-webhook"):
            document["metadata"]["name"] = f"{full[release]}-webhook"
            if "roleRef" in document:
                document["roleRef"]["name"] = f"{full[release]}-webhook"


def global_pull_policy(case: Case, documents: list[Document]) -> None:
    if case.name == "operator-names-images":
        (webhook,) = [
            document
            for document in kinds(documents, "Deployment")
            if "webhook" in document["metadata"]["name"]
        ]
        webhook["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Always"


def webhook_program(_case: Case, documents: list[Document]) -> None:
    for document in kinds(documents, "Deployment"):
        for container in document["spec"]["template"]["spec"]["containers"]:
            if container["name"] == "webhook":
                container["command"] = ["/webhook"]


def webhook_rights(_case: Case, documents: list[Document]) -> None:
    found = {each["kind"]: each for each in documents if each["metadata"]["name"].endswith("-webhook")}
    if "ClusterRole" not in found:
        return
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    rules = [rule("", ["configmaps", "persistentvolumeclaims"], "get")]
    if "MutatingWebhookConfiguration" in found:
        rules += [rule("", ["nodes"], "get"), rule("", ["pods"], "get", "patch")]
    if "--metrics-secure" in container["args"]:
        rules.append(rule("authentication.k8s.io", ["tokenreviews"], "create"))
        rules.append(rule("authorization.k8s.io", ["subjectaccessreviews"], "create"))
    found["ClusterRole"]["rules"] = rules
    if "--leader-elect" in container["args"]:
        namespace = found["Deployment"]["metadata"]["namespace"]
        leases = [rule("coordination.k8s.io", ["leases"], "create", "get", "patch", "update")]
        documents.append(namespaced(found["ClusterRole"], "Role", namespace) | {"rules": leases})
        bound = namespaced(found["ClusterRoleBinding"], "RoleBinding", namespace)
        documents.append(bound | {"roleRef": {**bound["roleRef"], "kind": "Role"}})


def webhook_renews(_case: Case, documents: list[Document]) -> None:
    """Where Helm made the certificate: the flags, and rights on that Secret and those registrations."""
    found = {each["kind"]: each for each in documents if each["metadata"]["name"].endswith("-webhook")}
    secrets = [each for each in kinds(documents, "Secret") if "tls.crt" in each.get("data", {})]
    if not secrets or "ClusterRole" not in found:
        return
    role, deployment = found["ClusterRole"], found["Deployment"]
    secret, name = secrets[0]["metadata"]["name"], role["metadata"]["name"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["args"] += ["--renew-certificate", secret, "--registration", name]
    resources = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]
    registrations = rule("admissionregistration.k8s.io", resources, "get", "patch")
    role["rules"].append(registrations | {"resourceNames": [name]})
    own = [each for each in kinds(documents, "Role") if each["metadata"]["name"] == name]
    if not own:
        namespace = deployment["metadata"]["namespace"]
        own = [namespaced(role, "Role", namespace) | {"rules": []}]
        bound = namespaced(found["ClusterRoleBinding"], "RoleBinding", namespace)
        documents += [*own, bound | {"roleRef": {**bound["roleRef"], "kind": "Role"}}]
    own[0]["rules"].append(rule("", ["secrets"], "get", "patch") | {"resourceNames": [secret]})


def rule(group: str, resources: list[str], *verbs: str) -> Document:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def namespaced(document: Document, kind: str, namespace: str) -> Document:
    return {**document, "kind": kind, "metadata": {**document["metadata"], "namespace": namespace}}


OPTIONS = {
    ("slurm-conf-map", "Controller"): (
        "DisableRootJobs=false\nEnforcePartLimits=YES\nEpilogues=a;b\nFairShareDampeningFactor=1.5\nKillWait=0\n"
        "MaxArraySize=1000001\nMaxJobCount=100000\nMaxJobId=67043328\nMinJobAge=300\nPrologFlags=Contain,X11\n"
        "ReturnToService=2\nSlurmctldDebug=debug2\nTrackWCKey=true\nacctGatherNodeFreq=30,60"
    ),
    ("slurm-conf-map", "NodeSet"): "Features=big Gres=gpu:a100:2,shard:8 RealMemory=1048576 Weight=0",
    ("slurm-partitions", "Controller"): (
        "PartitionName=Long Nodes=gpu AllowGroups=staff,admin ExclusiveUser=true Hidden=false "
        "PriorityJobFactor=0\n"
        "PartitionName=all Nodes=ALL Default=YES MaxNodes=8 MaxTime=UNLIMITED\n"
        "PartitionName=bare Nodes=alpha \n"
        "PartitionName=short Nodes=alpha,zeta MaxTime=00:30:00 Default=NO"
    ),
}


def option_values(case: Case, documents: list[Document]) -> None:
    for document in documents:
        text = OPTIONS.get((case.name, document["kind"]))
        if text and "extraConf" in document["spec"]:
            document["spec"]["extraConf"] = text


def mig_mapping(case: Case, documents: list[Document]) -> None:
    path = "/var/lib/dcgm-exporter/job-mapping"
    for document in documents if case.name == "slurm-dcgm" else ():
        if document["metadata"]["name"] == "slurm-worker-mig":
            spec = document["spec"]
            spec["slurmd"]["volumeMounts"].append({"name": "dcgm-job-mapping", "mountPath": path})
            volume = {"name": "dcgm-job-mapping", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
            spec["template"]["spec"]["volumes"].append(volume)


def lost_jobs(_case: Case, documents: list[Document]) -> None:
    for document in kinds(documents, "NodeSet"):
        slurmd = document["spec"]["slurmd"]
        if "dcgm-job-mapping" in [mount["name"] for mount in slurmd.get("volumeMounts", [])]:
            slurmd["lifecycle"] = {"postStart": {"exec": {"command": ["sh", "-c", "<script>"]}}}


def script_priority(case: Case, documents: list[Document]) -> None:
    for document in kinds(documents, "ConfigMap") if case.name == "slurm-dcgm-number" else ():
        when = document["metadata"]["name"].split("-")[1]
        document["data"] = {f"{when}-50-dcgm.sh": "<script>"}


def gres_with_raw_options(case: Case, documents: list[Document]) -> None:
    for document in kinds(documents, "NodeSet") if case.name == "slurm-a3ultra" else ():
        document["spec"]["extraConf"] += " Gres=gpu:nvidia_h200:8"


def mounts_by_path(case: Case, documents: list[Document]) -> None:
    for document in documents if case.name == "slurm-a3mega" else ():
        if document["metadata"]["name"] == "slurm-worker-mega":
            document["spec"]["slurmd"]["volumeMounts"][0] = {"name": "data", "mountPath": "/data"}


def no_registry_of_google(case: Case, documents: list[Document]) -> None:
    daemon = "registry.example/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21"
    if case.name == "slurm-a3mega":
        documents[:] = [
            texts(document, lambda text: TCPXO if text == daemon else text) for document in documents
        ]


TCPXO = "registry.example/tcpxo:1"

DEVIATIONS = (
    Deviation(
        "own images",
        "default images are ours: coil/*, tag 26.05; sidecar images are pinned (spec: helm 11, no. 29)",
        own_images,
    ),
    Deviation(
        "no version in pod labels",
        "a new chart version must not restart slurmctld and workers (spec: helm 11, no. 15)",
        pod_labels,
    ),
    Deviation(
        "cluster-scoped objects have no namespace",
        "the API server drops it; it says nothing (spec: helm 4.5)",
        no_namespace,
    ),
    Deviation(
        "the operator's Service selects by name and instance",
        "a version in the selector loses all pods during an upgrade (spec: helm 11, no. 16)",
        service_selector,
    ),
    Deviation(
        "keys stay when the release goes",
        "a key is never made anew by a re-installation (invariant I10)",
        keep_keys,
    ),
    Deviation(
        "cluster-scoped webhook objects carry the release's name",
        "two releases must not fight over them; default names stay (spec: helm 11, no. 18)",
        own_webhook_names,
    ),
    Deviation(
        "the webhook has the rights that it uses",
        "the reference's may write custom resources and every Lease, and list pods it never lists",
        webhook_rights,
    ),
    Deviation(
        "the webhook container names its program",
        "one image holds the operator and the webhook; the path is that of the reference's image",
        webhook_program,
    ),
    Deviation(
        "the webhook renews the certificate that Helm made",
        "nobody else does before it ends; with rights on that one Secret and its own registrations",
        webhook_renews,
    ),
    Deviation(
        "the global pull policy reaches components",
        "a default of the component hid it (spec: helm 11, no. 33)",
        global_pull_policy,
    ),
    Deviation(
        "option maps keep 0 and false, print integers in full and do not split at `;`",
        "KillWait: 0 vanished, 1000000 became 1e+06 (spec: helm 11, no. 8)",
        option_values,
    ),
    Deviation("MIG devices count as GPUs", "their jobs are mapped too (spec: helm 11, no. 12)", mig_mapping),
    Deviation(
        "job mapping of a lost worker is taken back",
        "the epilog of its jobs never ran, and the exporter went on naming them (spec: helm 11, no. 14)",
        lost_jobs,
    ),
    Deviation(
        "a script priority may be a number",
        "it gave a broken file name (spec: helm 11, no. 10)",
        script_priority,
    ),
    Deviation(
        "GPUs of A3 machines are configured with raw options too",
        "extraConf hid the Gres that the vendor block promises (spec: helm 11, no. 13)",
        gres_with_raw_options,
    ),
    Deviation(
        "a vendor's mounts are matched by path",
        "two mounts of one volume became two copies of the last (spec: helm 11, no. 11)",
        mounts_by_path,
    ),
    Deviation(
        "the TCPXO daemon's image is a value without a default",
        "this project names no registry: set vendor.google.tcpxoImage",
        no_registry_of_google,
    ),
)

FAILURES: dict[str, str] = {
    "operator-image-empty": r"operator\.image is required",
    "operator-metrics-port-text": r"operator\.metricsPort must be an integer between 0 and 65535",
    "operator-old-kubernetes": r"requires kubeVersion: >= 1\.29\.0-0",
    "slurm-a3-eight-networks": "A3 Mega requires exactly 9 networks, but 8 were specified",
    "slurm-image-without-tag": r"controller\.slurmctld\.image\.tag is required, or a digest",
    "slurm-partition-unknown-nodeset": "referencing nodeset `cpu2` that does not exist or is disabled",
    # The reference renders these; ours say at once what could not work (spec: helm 11, no. 31 and 8).
    "slurm-names-long": "would have 82 characters, and 63 are allowed; set fullnameOverride",
    "slurm-conf-map-nested": r"controller\.extraConfMap\.Nested is a map",
}
"""What a failing case has to say."""

FACTS: dict[str, tuple[str, list[str], Any]] = {
    "slurm-conf-raw-breaks": ("NodeSet/slurm-worker-one", ["spec", "extraConf"], 'Comment="rack: 4"'),
    "slurm-file-leading-blank": (
        "ConfigMap/slurm-config-extra",
        ["data", "plugstack.conf"],
        "  optional /usr/lib/a.so\nrequired /usr/lib/b.so\n",
    ),
    "slurm-loginset-service-null": ("LoginSet/slurm-login-one", ["spec", "service"], None),
    "slurm-nodeset-ssh-null": ("NodeSet/slurm-worker-one", ["spec", "ssh"], None),
    "slurm-partition-empty-list": ("Controller/slurm", ["spec", "extraConf"], None),
    "slurm-vendor-null": ("Controller/slurm", ["spec", "prologScriptRefs"], None),
}
"""Cases that fail only in the reference (spec: helm 11, no. 9, 32 and 34): an object, a member, its value."""


def arguments(case: Case) -> list[str]:
    """What has to be said in addition, for a case to render."""
    return ["--set", f"vendor.google.tcpxoImage={TCPXO}"] if case.name == "slurm-a3mega" else []


def expected_failure(case: Case) -> str | None:
    """Pattern of the message with which a case has to fail; None: it has to render."""
    return FAILURES.get(case.name)


def expected(case: Case) -> list[Document]:
    """The reference's documents with all deviations."""
    documents = copy.deepcopy(case.golden)
    for deviation in DEVIATIONS:
        deviation.change(case, documents)
    return documents


def used(case: Case) -> set[str]:
    """Names of the deviations that make a difference in a case."""
    if case.name in FAILURES or case.name in FACTS:
        return set()
    names: set[str] = set()
    documents = copy.deepcopy(case.golden)
    for deviation in DEVIATIONS:
        before = copy.deepcopy(documents)
        deviation.change(case, documents)
        names |= {deviation.name} if documents != before else set()
    return names
