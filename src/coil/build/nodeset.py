"""The objects of a NodeSet (spec: nodeset 5, 6 and 11).

    revision = nodeset.controller_revision(ns, number=1)          # its name and hash decide a roll
    template = nodeset.template(ns, inputs, revision_hash)        # once per NodeSet and inputs
    pod = nodeset.stamp_ordinal(template, 3)                      # StatefulSet mode
    pod = nodeset.stamp_node(template, "kn-1", hostname)          # DaemonSet mode
    claims = nodeset.claims(template, pod)                        # what the pod's volumes need

    nodeset.worker_service(controller_key, nodesets)              # one per cluster
    nodeset.worker_budget(controller_key, nodesets)
    nodeset.ssh_config(ns)                                        # None without ssh

Pure. A stamped pod shares everything but its own members with the template: never change one in place.
BuildError says which member of the NodeSet makes an object impossible.
"""

from collections.abc import Iterable, Mapping

import msgspec

from coil.api import keys, names
from coil.api.nodeset import NodeSet
from coil.build import metadata, revision
from coil.build import service as services
from coil.build.errors import BuildError
from coil.build.hashes import byte_hash
from coil.build.worker import PodInputs, pod_spec
from coil.support.conftext import Section, render
from coil.support.objects import JsonObject, ObjectKey

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class PodTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """All that the pods of one NodeSet have in common.

    `metadata` and `spec` are what each pod starts from; `labels` are the common ones.
    """

    nodeset: NodeSet
    labels: dict[str, str]
    metadata: JsonObject
    spec: JsonObject
    claim_templates: list[JsonObject]


def labels(nodeset: NodeSet) -> dict[str, str]:
    """The operator's labels of everything that belongs to the NodeSet."""
    return {
        **names.operator_labels(keys.SLURMD, nodeset.metadata.name, keys.COMPONENT_WORKER),
        keys.LABEL_CLUSTER: nodeset.spec.controller_ref.name,
    }


def revision_hash(nodeset: NodeSet) -> str:
    """The hash of the NodeSet's current revision.

    Raises:
        BuildError: a container or the pod template has a member of the wrong type.
    """
    payload = revision.payload(msgspec.to_builtins(nodeset.spec))
    return revision.hash_of(payload, nodeset.status.collision_count or 0)


def controller_revision(nodeset: NodeSet, *, number: int) -> JsonObject:
    """The ControllerRevision that records the NodeSet's current template.

    Raises:
        BuildError: a container or the pod template has a member of the wrong type.
    """
    payload = revision.payload(msgspec.to_builtins(nodeset.spec))
    digest = revision.hash_of(payload, nodeset.status.collision_count or 0)
    meta = metadata.object_metadata(
        names.revision(nodeset.metadata.name, digest),
        nodeset,
        [nodeset.spec.template.metadata.labels, {keys.LABEL_REVISION: digest}],
        [nodeset.metadata.annotations],
    )
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": meta,
        "data": payload,
        "revision": number,
    }


def worker_service(cluster: ObjectKey, nodesets: Iterable[NodeSet]) -> JsonObject:
    """The headless Service that gives all workers of a cluster their DNS names.

    Raises:
        BuildError: the Controller's name is too long for the Service's.
    """
    selector = {keys.LABEL_NAME: keys.SLURMD, keys.LABEL_CLUSTER: cluster.name}
    meta = _shared_metadata(names.worker_service(cluster.name), cluster, nodesets)
    return services.headless(meta, keys.SLURMD, keys.PORT_SLURMD, selector)


def worker_budget(cluster: ObjectKey, nodesets: Iterable[NodeSet]) -> JsonObject:
    """The PodDisruptionBudget that protects the busy workers of a cluster from eviction."""
    selector = {keys.LABEL_POD_PROTECT: "true", keys.LABEL_CLUSTER: cluster.name}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _shared_metadata(names.worker_budget(cluster.name), cluster, nodesets),
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": selector}},
    }


def _shared_metadata(name: str, cluster: ObjectKey, nodesets: Iterable[NodeSet]) -> JsonObject:
    owners = sorted(
        (nodeset for nodeset in nodesets if nodeset.controller_key == cluster),
        key=lambda nodeset: nodeset.metadata.name,
    )
    return {
        "name": name,
        "namespace": cluster.namespace,
        "ownerReferences": [metadata.owner_reference(owner) for owner in owners],
    }


def sshd_config(nodeset: NodeSet) -> str:
    """The text of sshd_config in worker pods; who may log in is decided by PAM in the image."""
    general = [
        "Include /etc/ssh/sshd_config.d/*.conf",
        "UsePAM yes",
        "Subsystem sftp internal-sftp",
        "AuthenticationMethods publickey password",
    ]
    return render(
        [Section("GENERAL", general), Section("EXTRA CONFIG", [nodeset.spec.ssh.extra_sshd_config])]
    )


def ssh_config(nodeset: NodeSet) -> JsonObject | None:
    """The ConfigMap with sshd_config; None without ssh."""
    if not nodeset.spec.ssh.enabled:
        return None
    meta = metadata.object_metadata(
        names.ssh_config(nodeset.metadata.name),
        nodeset,
        [nodeset.metadata.labels, labels(nodeset)],
        [nodeset.metadata.annotations],
    )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {keys.FILE_SSHD_CONFIG: sshd_config(nodeset)},
        "immutable": False,
    }


def template(nodeset: NodeSet, inputs: PodInputs, digest: str) -> PodTemplate:
    """What all pods of the NodeSet have in common; `digest` is their revision hash.

    Raises:
        BuildError: an override has a member of the wrong type, or a name is too long for a label.
    """
    name, wanted = nodeset.metadata.name, nodeset.spec.template
    metadata.fits_label(name, "metadata.name")
    metadata.fits_label(nodeset.spec.controller_ref.name, "spec.controllerRef.name")
    identity = {keys.LABEL_SCALING_MODE: nodeset.spec.scaling_mode, keys.LABEL_REVISION: digest}
    common = metadata.overlay(nodeset.metadata.labels, wanted.metadata.labels, labels(nodeset), identity)
    annotations = metadata.overlay(
        nodeset.metadata.annotations, wanted.metadata.annotations, _annotations(nodeset, inputs)
    )
    meta: JsonObject = {
        "generateName": f"{name}-",
        "namespace": nodeset.metadata.namespace,
        "annotations": annotations,
        "ownerReferences": [metadata.controller_of(nodeset)],
    }
    return PodTemplate(
        nodeset=nodeset,
        labels=common,
        metadata=meta,
        spec=pod_spec(nodeset, inputs),
        claim_templates=nodeset.spec.volume_claim_templates,
    )


def stamp_ordinal(template: PodTemplate, ordinal: int, *, node: str | None = None) -> JsonObject:
    """The pod with that ordinal, in scaling mode StatefulSet; `node` pins it to a Kubernetes node.

    Raises:
        BuildError: the pod's or the host's name is longer than a label may be.
    """
    nodeset = template.nodeset
    padded = names.padded(ordinal, nodeset.spec.ordinal_padding)
    name = f"{nodeset.metadata.name}-{padded}"
    prefix = nodeset.template_hostname
    hostname = prefix + padded if prefix else name
    own = {
        keys.LABEL_POD_NAME: metadata.fits_label(name, "metadata.name"),
        keys.LABEL_POD_INDEX: padded,
        keys.LABEL_POD_HOSTNAME: metadata.fits_label(hostname, "spec.template.spec.hostname"),
    }
    meta = {**template.metadata, "name": name, "labels": {**template.labels, **own}}
    return _pod(template, meta, hostname, name, node)


def stamp_node(template: PodTemplate, node: str, hostname: str) -> JsonObject:
    """The pod for a Kubernetes node, in scaling mode DaemonSet; the server makes up its name.

    Raises:
        BuildError: the host name is longer than a label may be.
    """
    where = f"annotation {keys.ANNOTATION_HOSTNAME_OVERRIDE} or name of node {node}"
    own = {keys.LABEL_POD_NAME: "", keys.LABEL_POD_HOSTNAME: metadata.fits_label(hostname, where)}
    meta = {**template.metadata, "labels": {**template.labels, **own}}
    return _pod(template, meta, hostname, f"{template.nodeset.metadata.name}-{hostname}", node)


def daemon_hostname(node: str, annotations: Mapping[str, str]) -> str:
    """Host name, which is the Slurm node name, of the worker on a Kubernetes node (spec: nodeset 4.2)."""
    return annotations.get(keys.ANNOTATION_HOSTNAME_OVERRIDE) or node.partition(".")[0]


def claims(template: PodTemplate, pod: JsonObject) -> list[JsonObject]:
    """The claims that a stamped pod's volumes name. Who owns them depends on the retention policy."""
    nodeset = template.nodeset
    suffix = _claim_owner(nodeset, pod)
    own = names.selector_labels(keys.SLURMD, nodeset.metadata.name)
    return [_claim(wanted, suffix, own, nodeset.metadata.namespace) for wanted in template.claim_templates]


def _claim_owner(nodeset: NodeSet, pod: JsonObject) -> str:
    pod_labels = pod["metadata"]["labels"]
    identity = keys.LABEL_POD_HOSTNAME if nodeset.daemon else keys.LABEL_POD_INDEX
    return f"{nodeset.metadata.name}-{pod_labels[identity]}"


def _claim(wanted: JsonObject, suffix: str, own: dict[str, str], namespace: str) -> JsonObject:
    given = wanted.get("metadata") or {}
    meta: JsonObject = {
        "name": names.claim(_claim_template_name(wanted), suffix),
        "namespace": namespace,
        "labels": {**(given.get("labels") or {}), **own},
    }
    if given.get("annotations"):
        meta["annotations"] = given["annotations"]
    spec = wanted.get("spec") or {}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def _claim_template_name(wanted: JsonObject) -> str:
    name = (wanted.get("metadata") or {}).get("name")
    if not name:
        raise BuildError("spec.volumeClaimTemplates", "a claim template has no metadata.name")
    return str(name)


def _pod(
    template: PodTemplate, meta: JsonObject, hostname: str, claim_owner: str, node: str | None
) -> JsonObject:
    spec = {**template.spec, "hostname": hostname}
    if template.claim_templates:
        spec["volumes"] = _with_claims(template, claim_owner)
    if node is not None:
        spec["affinity"] = _pinned(template.spec.get("affinity", {}), node)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _with_claims(template: PodTemplate, owner: str) -> list[JsonObject]:
    volumes: list[JsonObject] = []
    for wanted in template.claim_templates:
        name = _claim_template_name(wanted)
        claim = {"claimName": names.claim(name, owner)}
        volumes.append({"name": name, "persistentVolumeClaim": claim})
    own = {volume["name"] for volume in volumes}
    return volumes + [volume for volume in template.spec.get("volumes", ()) if volume["name"] not in own]


def _pinned(affinity: JsonObject, node: str) -> JsonObject:
    """`affinity` with one required node; the user's required terms were checked before."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    near = {**affinity.get("nodeAffinity", {}), _REQUIRED: {"nodeSelectorTerms": [term]}}
    return {**affinity, "nodeAffinity": near}


def _annotations(nodeset: NodeSet, inputs: PodInputs) -> dict[str, str]:
    ssh = nodeset.spec.ssh.enabled
    return {
        keys.ANNOTATION_SSHD_CONF_HASH: byte_hash(sshd_config(nodeset).encode() if ssh else None),
        keys.ANNOTATION_SSSD_CONF_HASH: byte_hash(inputs.sssd_conf),
        keys.ANNOTATION_DEFAULT_CONTAINER: keys.SLURMD,
    }
