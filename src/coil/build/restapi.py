"""The objects of a RestApi (spec: control-plane 7).

    service(restapi)
    deployment(restapi, controller)   # the Controller it refers to

Pure; each returns a manifest. BuildError says which member makes an object impossible.
"""

import msgspec

from coil.api import keys, names
from coil.api.controller import Controller
from coil.api.restapi import RestApi
from coil.build import core, metadata, pods, templates
from coil.build import service as services
from coil.build.errors import BuildError
from coil.support.conftext import parse_options
from coil.support.objects import JsonObject

NOT_IN_PODS = frozenset({"replicas", "service"})
"""Members of `spec` that the pod template does not depend on."""

_FILE_MODE = 0o600
_PROBE_FAILURES = 6
_SECURITY = "disable_unshare_files,disable_unshare_sysv"


def labels(restapi: RestApi) -> dict[str, str]:
    """The operator's labels of everything that belongs to the RestApi."""
    return names.operator_labels(keys.SLURMRESTD, restapi.metadata.name, keys.COMPONENT_RESTAPI)


def selector(restapi: RestApi) -> dict[str, str]:
    """The labels that select the slurmrestd pods."""
    return names.selector_labels(keys.SLURMRESTD, restapi.metadata.name)


def service(restapi: RestApi) -> JsonObject:
    """The Service of slurmrestd; it takes no labels and annotations from the RestApi itself (Q11)."""
    wanted = restapi.spec.service
    meta = metadata.object_metadata(
        names.restapi(restapi.metadata.name),
        restapi,
        [wanted.metadata.labels, labels(restapi)],
        [wanted.metadata.annotations],
    )
    return services.service(meta, wanted, keys.SLURMRESTD, keys.PORT_SLURMRESTD, selector(restapi))


def deployment(restapi: RestApi, controller: Controller) -> JsonObject:
    """The Deployment of slurmrestd."""
    name = names.restapi(restapi.metadata.name)
    template = restapi.spec.template.metadata
    all_labels = [restapi.metadata.labels, template.labels, labels(restapi)]
    annotations = [restapi.metadata.annotations, template.annotations]
    pod_annotations = [*annotations, {keys.ANNOTATION_DEFAULT_CONTAINER: keys.SLURMRESTD}]
    manifest: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata.object_metadata(name, restapi, all_labels, annotations),
        "spec": {
            "replicas": restapi.spec.replicas,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": selector(restapi)},
            "template": {
                "metadata": metadata.template_metadata(name, restapi, all_labels, pod_annotations),
                "spec": _pod_spec(restapi, controller),
            },
        },
    }
    cluster = controller.spec
    also = [
        controller.metadata.name,
        msgspec.to_builtins(cluster.slurm_key_ref),
        bool(cluster.accounting_ref),
        *(["IPv6"] if _uses_ipv6(controller) else []),
    ]
    return templates.marked(manifest, restapi, apart=NOT_IN_PODS, also=also)


def _pod_spec(restapi: RestApi, controller: Controller) -> JsonObject:
    key = controller.spec.slurm_key_ref
    if key is None:
        raise BuildError("spec.controllerRef", f"Controller {controller.metadata.name} has no slurmKeyRef")
    conf = core.KeyToPath(key=keys.FILE_SLURM_CONF, path=keys.FILE_SLURM_CONF)
    sources = [
        core.config_map_files(names.controller_config(controller.metadata.name), conf),
        core.slurm_key_file(key),
    ]
    base = core.PodSpec(
        containers=[],
        automountServiceAccountToken=False,
        securityContext=core.PodSecurityContext(
            runAsNonRoot=True, runAsUser=keys.NOBODY_UID, runAsGroup=keys.NOBODY_GID, fsGroup=keys.NOBODY_GID
        ),
        volumes=[core.projected(keys.VOLUME_ETC, _FILE_MODE, sources)],
    )
    return pods.pod_spec(base, [_slurmrestd(restapi, controller)], [], restapi.spec.template.spec)


def _slurmrestd(restapi: RestApi, controller: Controller) -> JsonObject:
    plugins = [] if controller.spec.accounting_ref else ["-s", "openapi/slurmctld"]
    base = core.Container(
        name=keys.SLURMRESTD,
        args=plugins,
        env=[
            core.EnvVar(name="SLURM_JWT", value="daemon"),
            core.EnvVar(name="SLURMRESTD_SECURITY", value=_SECURITY),
        ],
        ports=[core.ContainerPort(name=keys.SLURMRESTD, containerPort=keys.PORT_SLURMRESTD, protocol="TCP")],
        startupProbe=core.tcp_probe(keys.PORT_SLURMRESTD, failures=_PROBE_FAILURES),
        livenessProbe=core.tcp_probe(keys.PORT_SLURMRESTD, failures=_PROBE_FAILURES),
        readinessProbe=core.tcp_probe(keys.PORT_SLURMRESTD),
        securityContext=core.run_as(keys.NOBODY_UID, keys.NOBODY_GID),
        volumeMounts=[core.mount(keys.VOLUME_ETC, keys.DIR_CONFIG, read_only=True)],
    )
    container = pods.container(base, restapi.spec.slurmrestd, "spec.slurmrestd")
    # Slurm takes the IPv6 wildcard, which accepts both families, only when it is told to use IPv6.
    everywhere = "[::]" if _uses_ipv6(controller) else "0.0.0.0"  # noqa: S104 - the pod's own addresses
    return container | {"args": [*container.get("args", ()), f"{everywhere}:{keys.PORT_SLURMRESTD}"]}


def _uses_ipv6(controller: Controller) -> bool:
    parameters = parse_options(controller.spec.extra_conf).get("communicationparameters", "")
    return "enableipv6" in parameters.lower().split(",")
