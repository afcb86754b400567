"""The pod in which a configuration is tried before the running slurmctld gets it (invariant I11).

    body = candidate(controller, generation, files)     # a ConfigMap beside the live one
    manifest = pod(controller, generation, files)

The pod runs slurmctld's own image with the user's container settings and volumes, but with its own state,
keys, run folder and network address, no name service, no Service that leads to it and no right beyond those
of the restricted pod security standard.
"""

from collections.abc import Mapping

from coil.api import keys, names
from coil.api.controller import Controller
from coil.build import core, isolated, metadata, pods, scripts
from coil.support.objects import JsonObject

LIMIT_S = 20
"""How long slurmctld may take to come up or to refuse."""
DEADLINE_S = 60
"""The kubelet ends the pod after this time, whatever happens to the operator."""

_CANDIDATE = "candidate"
_WORK = "rehearsal"
_REQUESTS = {"cpu": "50m", "memory": "64Mi"}
_KEPT = (
    "affinity",
    "hostAliases",
    "imagePullSecrets",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "serviceAccountName",
    "tolerations",
)
"""Members of the user's pod spec that decide whether and where the pod can run."""
_NOT_KEPT = ("lifecycle", "livenessProbe", "ports", "readinessProbe", "startupProbe")


def candidate(
    controller: Controller, generation: str, files: Mapping[str, str], refused: str = ""
) -> JsonObject:
    """The ConfigMap with the files to try, or with the reason why they were refused."""
    told = {keys.ANNOTATION_REHEARSED: generation, **({keys.ANNOTATION_REFUSED: refused} if refused else {})}
    name = names.controller_candidate(controller.metadata.name)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata.object_metadata(name, controller, [_labels(controller)], [told]),
        "data": {} if refused else isolated.isolated(files),
    }


def pod(controller: Controller, generation: str, files: Mapping[str, str]) -> JsonObject:
    """The pod that tries the files of the candidate.

    Raises:
        BuildError: an override of the wrong type.
    """
    name = names.rehearsal_pod(controller.metadata.name, generation)
    told = {keys.ANNOTATION_REHEARSED: generation, keys.ANNOTATION_DEFAULT_CONTAINER: keys.SLURMCTLD}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata.object_metadata(name, controller, [_labels(controller)], [told]),
        "spec": _pod_spec(controller, files[keys.FILE_SLURM_CONF]),
    }


def _labels(controller: Controller) -> dict[str, str]:
    """Not those of slurmctld's pods, nor the user's: no Service may lead here."""
    return names.operator_labels(keys.REHEARSAL, controller.metadata.name, keys.COMPONENT_CONTROLLER)


def _pod_spec(controller: Controller, slurm_conf: str) -> JsonObject:
    built = pods.pod_spec(core.PodSpec(containers=[]), [], [], controller.spec.template.spec)
    first = names.controller_pod(controller.metadata.name, 0)
    container = _container(controller)
    ours = core.plain(
        core.PodSpec(
            containers=[],
            activeDeadlineSeconds=DEADLINE_S,
            automountServiceAccountToken=False,
            dnsPolicy="None",
            dnsConfig=core.PodDNSConfig(nameservers=[isolated.LOOPBACK]),
            enableServiceLinks=False,
            hostname=isolated.host_name(slurm_conf, first),
            restartPolicy="Never",
            securityContext=core.PodSecurityContext(
                runAsNonRoot=True,
                runAsUser=container["securityContext"]["runAsUser"],
                runAsGroup=container["securityContext"]["runAsGroup"],
                fsGroup=keys.SLURM_GID,
                seccompProfile=core.SeccompProfile(type="RuntimeDefault"),
            ),
            terminationGracePeriodSeconds=1,
        )
    )
    kept = {name: built[name] for name in _KEPT if name in built}
    return {
        **kept,
        **ours,
        "affinity": _beside(kept.get("affinity", {}), first, controller.metadata.namespace),
        "initContainers": [item for item in built.get("initContainers", ()) if "restartPolicy" not in item],
        "containers": [container],
        "volumes": [*built.get("volumes", ()), *map(core.plain, _volumes(controller))],
    }


def _beside(affinity: JsonObject, slurmctld: str, namespace: str) -> JsonObject:
    """Where slurmctld runs if possible: the image is there, and so are claims that one node can use."""
    labels = {"statefulset.kubernetes.io/pod-name": slurmctld}
    near: JsonObject = {
        "weight": 100,
        "podAffinityTerm": {
            "labelSelector": {"matchLabels": labels},
            "namespaces": [namespace],
            "topologyKey": "kubernetes.io/hostname",
        },
    }
    others = affinity.get("podAffinity", {})
    member = "preferredDuringSchedulingIgnoredDuringExecution"
    return {**affinity, "podAffinity": {**others, member: [*others.get(member, ()), near]}}


def _container(controller: Controller) -> JsonObject:
    base = core.Container(
        name=keys.SLURMCTLD,
        securityContext=core.run_as(keys.SLURM_UID, keys.SLURM_GID),
        volumeMounts=[
            core.mount(_CANDIDATE, keys.DIR_STAGING_SOURCE, read_only=True),
            core.mount(keys.VOLUME_ETC, keys.DIR_CONFIG),
            core.mount(keys.VOLUME_RUN, keys.DIR_RUN),
            core.mount(keys.VOLUME_AUTH_SOCKET, keys.DIR_AUTH_SOCKET),
            core.mount(keys.VOLUME_LOGFILE, keys.DIR_LOG),
            core.mount(_WORK, isolated.WORK_DIR),
        ],
    )
    merged = pods.container(base, controller.spec.slurmctld, "spec.slurmctld")
    kept = {name: value for name, value in merged.items() if name not in (*_NOT_KEPT, "args")}
    limits = merged.get("resources", {}).get("limits")
    user = merged["securityContext"]
    return kept | {
        "name": keys.SLURMCTLD,
        "command": ["sh", "-c", scripts.REHEARSE],
        "resources": {"requests": _REQUESTS, **({"limits": limits} if limits else {})},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": user["runAsUser"],
            "runAsGroup": user["runAsGroup"],
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _volumes(controller: Controller) -> list[core.Volume]:
    source = core.ConfigMapVolumeSource(name=names.controller_candidate(controller.metadata.name))
    own = (keys.VOLUME_ETC, keys.VOLUME_RUN, keys.VOLUME_AUTH_SOCKET, keys.VOLUME_LOGFILE, _WORK)
    return [core.Volume(name=_CANDIDATE, configMap=source), *map(core.memory_dir, own)]
