"""Parts of pod templates that several kinds share."""

from collections.abc import Sequence

from coil.api import keys
from coil.build import core, scripts, typed
from coil.build.merge import merge_container, merge_pod_spec
from coil.support.objects import JsonObject

_ANTI_AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


def container(base: core.Container, override: JsonObject, where: str) -> JsonObject:
    """The built container with the user's, found at `where`, merged over it.

    Raises:
        BuildError: a member of the override has the wrong type.
    """
    return merge_container(core.plain(base), typed.container(override, where))


def pod_spec(
    base: core.PodSpec, containers: Sequence[JsonObject], sidecars: Sequence[JsonObject], override: JsonObject
) -> JsonObject:
    """The pod spec with the built containers, and the user's `template.spec` merged over it.

    Raises:
        BuildError: a member of the override has the wrong type.
    """
    built = core.plain(base) | {"containers": list(containers)}
    if sidecars:
        built["initContainers"] = list(sidecars)
    return merge_pod_spec(built, typed.pod_spec(override, "spec.template.spec"))


def log_sidecar(log_file: str, override: JsonObject) -> JsonObject:
    """The sidecar that prints what a daemon logs to `log_file`."""
    base = core.Container(
        name="logfile",
        command=["sh", "-c", scripts.LOGFILE],
        env=[core.EnvVar(name="SOCKET", value=log_file)],
        restartPolicy="Always",
        volumeMounts=[core.mount(keys.VOLUME_LOGFILE, keys.DIR_LOG)],
    )
    return container(base, override, "spec.logfile")


def keep_apart(spec: JsonObject, selector: JsonObject) -> JsonObject:
    """`spec` with a rule that no two pods that match `selector` share a node, after the user's rules."""
    affinity = spec.get("affinity", {})
    between_pods = affinity.get("podAntiAffinity", {})
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    required = [*between_pods.get(_ANTI_AFFINITY, ()), term]
    anti = {**between_pods, _ANTI_AFFINITY: required}
    return spec | {"affinity": {**affinity, "podAntiAffinity": anti}}
