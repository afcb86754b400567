"""The objects of a Controller (spec: control-plane 5).

    config = config_map(controller, config_inputs)
    hashes = PodHashes(slurm_key=map_hash(...), jwt_key=map_hash(...), config=config_hash(config["data"]))
    for manifest in (internal_service(c), service(c), config, stateful_set(c, hashes), service_monitor(c)):
        ...

Every function is pure and returns a manifest, or None when the Controller shall not have that object.
BuildError says which member of the Controller makes an object impossible.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from coil.api import keys, names
from coil.api.controller import Controller, Endpoint, ServiceMonitor
from coil.api.meta import LocalObjectReference
from coil.build import core, metadata, pods, scripts, templates
from coil.build import service as services
from coil.build.errors import BuildError
from coil.build.hashes import PodHashes, map_hash
from coil.build.slurmconf import ConfigInputs, config_files, state_dir
from coil.support.objects import JsonObject

NOT_IN_PODS = frozenset({"accountingRef", "externalConfig", "extraConf", "metrics", "service"})
"""Members of `spec` that the pod template does not depend on."""

_METRICS_PATHS = ("/metrics/jobs", "/metrics/nodes", "/metrics/partitions", "/metrics/scheduler")
_FILES_MARK = "# Files beside this one: "
_MARK_LENGTH = 16
_FILE_MODE = 0o610
_PROBE_FAILURES = 6
_AUTH_SOCKET = core.mount(keys.VOLUME_AUTH_SOCKET, keys.DIR_AUTH_SOCKET)


def labels(controller: Controller) -> dict[str, str]:
    """The operator's labels of everything that belongs to the Controller."""
    return names.operator_labels(keys.SLURMCTLD, controller.metadata.name, keys.COMPONENT_CONTROLLER)


def selector(controller: Controller) -> dict[str, str]:
    """The labels that select the slurmctld pods."""
    return names.selector_labels(keys.SLURMCTLD, controller.metadata.name)


def service(controller: Controller) -> JsonObject | None:
    """The Service for clients, which follows the active slurmctld where there are several.

    A single one is selected without the label: a pod that comes back while the operator is away gets none.

    It leads to the active pod before the kubelet has seen it ready: slurmctld answers a second after its
    start, but a startup probe that failed once is repeated only after its period. Without an endpoint
    clients are refused as well, so nothing is lost while the daemon does not listen yet.
    """
    if controller.spec.external:
        return None
    wanted = controller.spec.service
    meta = _metadata(
        controller,
        names.controller(controller.metadata.name),
        wanted.metadata.labels,
        wanted.metadata.annotations,
    )
    chosen = {keys.LABEL_ACTIVE: "true"} if controller.replicas > 1 else {}
    selected = selector(controller) | chosen
    manifest = services.service(meta, wanted, keys.SLURMCTLD, keys.PORT_SLURMCTLD, selected)
    return services.early(manifest)


def internal_service(controller: Controller) -> JsonObject | None:
    """The headless Service that gives each slurmctld pod its DNS name."""
    if controller.spec.external:
        return None
    meta = _metadata(controller, names.controller_internal(controller.metadata.name))
    return services.headless(meta, keys.SLURMCTLD, keys.PORT_SLURMCTLD, selector(controller))


def config_map(controller: Controller, inputs: ConfigInputs) -> JsonObject:
    """The ConfigMap with slurm.conf, for an external slurmctld as well.

    A last comment in slurm.conf names the content of the files that come from other ConfigMaps: slurmctld
    hashes its slurm.conf, comments included, so its hash tells which of those files it has.
    """
    name = names.controller_config(controller.metadata.name)
    if controller.spec.external:
        template = controller.spec.template.metadata
        own_labels, own_annotations = [template.labels, labels(controller)], [template.annotations]
        meta = metadata.object_metadata(name, controller, own_labels, own_annotations)
    else:
        meta = _metadata(controller, name)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": _marked(controller, config_files(controller, inputs), inputs),
        "immutable": False,
    }


def config_hash(data: Mapping[str, str]) -> str:
    """Map hash of the configuration ConfigMap, without what is said about files of other ConfigMaps."""
    own = {name: "".join(_unmarked(text)) for name, text in data.items()}
    return map_hash(own)


def files_mark(slurm_conf: str) -> str:
    """What a slurm.conf says about the files of other ConfigMaps; empty when it says nothing."""
    return next((line.strip() for line in slurm_conf.splitlines() if line.startswith(_FILES_MARK)), "")


def _unmarked(text: str) -> list[str]:
    return [line for line in text.splitlines(keepends=True) if not line.startswith(_FILES_MARK)]


def _marked(controller: Controller, files: dict[str, str], inputs: ConfigInputs) -> dict[str, str]:
    beside = beside_files(controller, inputs)
    if controller.spec.external or not beside:
        return files
    content = map_hash({name: f"{name}\0{text}\0" for name, text in beside.items()})
    mark = f"{_FILES_MARK}{content[:_MARK_LENGTH]}\n"
    return {**files, keys.FILE_SLURM_CONF: files[keys.FILE_SLURM_CONF] + mark}


def beside_files(controller: Controller, inputs: ConfigInputs) -> dict[str, str]:
    """The files in /etc/slurm that come from ConfigMaps of the user, by name."""
    found: dict[str, str] = {}
    for ref in references(controller):
        found |= inputs.config_maps.get(ref.name, {})
    jwks = controller.spec.jwks_key_ref
    if jwks is not None and jwks.key in inputs.config_maps.get(jwks.name, {}):
        found[keys.FILE_JWKS] = inputs.config_maps[jwks.name][jwks.key]
    return found


def stateful_set(controller: Controller, hashes: PodHashes) -> JsonObject | None:
    """The StatefulSet of slurmctld and its backups.

    Raises:
        BuildError: backups without a shared claim, or an override of the wrong type.
    """
    if controller.spec.external:
        return None
    name = names.controller(controller.metadata.name)
    template = controller.spec.template.metadata
    spec: JsonObject = {
        "replicas": controller.replicas,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": selector(controller)},
        "serviceName": names.controller_internal(controller.metadata.name),
        "template": {"metadata": _pod_metadata(controller, name, hashes), "spec": _pod_spec(controller)},
    }
    if _needs_claim_template(controller):
        spec["volumeClaimTemplates"] = [_claim_template(controller)]
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _metadata(controller, name, template.labels, template.annotations),
        "spec": spec,
    }
    return templates.marked(manifest, controller, apart=NOT_IN_PODS)


def service_monitor(controller: Controller) -> JsonObject | None:
    """The ServiceMonitor through which Prometheus finds slurmctld; None when it shall not exist."""
    wanted = controller.spec.metrics.service_monitor
    if wanted is None or not (controller.spec.metrics.enabled and wanted.enabled):
        return None
    name = names.controller(controller.metadata.name)
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": _metadata(controller, name, wanted.labels, wanted.annotations),
        "spec": {
            "endpoints": _endpoints(wanted, names.controller_internal(controller.metadata.name)),
            "namespaceSelector": {"matchNames": [controller.metadata.namespace]},
            "selector": {"matchLabels": selector(controller)},
        },
    }


def _metadata(controller: Controller, name: str, *added: dict[str, str]) -> JsonObject:
    """Metadata from the Controller and, when given, further labels and annotations."""
    more_labels, more_annotations = added or ({}, {})
    return metadata.object_metadata(
        name,
        controller,
        [controller.metadata.labels, more_labels, labels(controller)],
        [controller.metadata.annotations, more_annotations],
    )


def _pod_metadata(controller: Controller, name: str, hashes: PodHashes) -> JsonObject:
    template = controller.spec.template.metadata
    operator = {
        keys.ANNOTATION_SLURM_KEY_HASH: hashes.slurm_key,
        keys.ANNOTATION_JWT_KEY_HASH: hashes.jwt_key,
        keys.ANNOTATION_DEFAULT_CONTAINER: keys.SLURMCTLD,
    }
    if not controller.spec.inplace_reconfigure:
        operator[keys.ANNOTATION_SLURM_CONFIG_HASH] = hashes.config
    return metadata.template_metadata(
        name,
        controller,
        [controller.metadata.labels, template.labels, labels(controller)],
        [controller.metadata.annotations, template.annotations, operator],
    )


def _pod_spec(controller: Controller) -> JsonObject:
    spec = controller.spec
    base = core.PodSpec(
        containers=[],
        automountServiceAccountToken=False,
        securityContext=core.PodSecurityContext(
            runAsNonRoot=True, runAsUser=keys.SLURM_UID, runAsGroup=keys.SLURM_GID, fsGroup=keys.SLURM_GID
        ),
        volumes=[
            core.projected(keys.VOLUME_ETC, _FILE_MODE, _config_sources(controller)),
            core.memory_dir(keys.VOLUME_LOGFILE),
            core.memory_dir(keys.VOLUME_RUN),
            core.empty_dir(keys.VOLUME_AUTH_SOCKET),
        ],
    )
    sidecars = [pods.log_sidecar(keys.LOG_SLURMCTLD, spec.logfile)]
    if spec.inplace_reconfigure:
        sidecars.insert(0, _reconfigure(controller))
    merged = pods.pod_spec(base, [_slurmctld(controller)], sidecars, spec.template.spec)
    merged["volumes"] = [*merged["volumes"], *_state_volumes(controller)]
    return pods.keep_apart(merged, {"matchLabels": selector(controller)})


def _config_sources(controller: Controller) -> list[core.VolumeProjection]:
    spec = controller.spec
    if spec.slurm_key_ref is None or controller.jwt_ref is None:
        raise BuildError("spec", "slurmKeyRef and jwtKeyRef are needed unless spec.external is true")
    slurm_key, jwt_key = spec.slurm_key_ref, controller.jwt_ref
    sources = [
        core.config_map_files(names.controller_config(controller.metadata.name)),
        core.slurm_key_file(slurm_key),
        core.secret_file(jwt_key.name, jwt_key.key, keys.FILE_JWT_KEY),
        *(core.config_map_files(name) for name in sorted(ref.name for ref in references(controller))),
    ]
    if spec.jwks_key_ref is not None:
        item = core.KeyToPath(key=spec.jwks_key_ref.key, path=keys.FILE_JWKS)
        sources.append(core.config_map_files(spec.jwks_key_ref.name, item))
    return sources


def references(controller: Controller) -> list[LocalObjectReference]:
    """The ConfigMaps whose keys become files in /etc/slurm, in the order of the five lists."""
    spec = controller.spec
    return [
        *spec.config_file_refs,
        *spec.prolog_script_refs,
        *spec.epilog_script_refs,
        *spec.prolog_slurmctld_script_refs,
        *spec.epilog_slurmctld_script_refs,
    ]


def _slurmctld(controller: Controller) -> JsonObject:
    # A standby never says that it is ready, which would block an ordered roll.
    ready = "/livez" if controller.replicas > 1 else "/readyz"
    base = core.Container(
        name=keys.SLURMCTLD,
        ports=[core.ContainerPort(name=keys.SLURMCTLD, containerPort=keys.PORT_SLURMCTLD, protocol="TCP")],
        startupProbe=core.http_probe("/livez", keys.SLURMCTLD, failures=_PROBE_FAILURES),
        livenessProbe=core.http_probe("/livez", keys.SLURMCTLD, failures=_PROBE_FAILURES),
        readinessProbe=core.http_probe(ready, keys.SLURMCTLD),
        securityContext=core.run_as(keys.SLURM_UID, keys.SLURM_GID),
        volumeMounts=[
            core.mount(keys.VOLUME_ETC, keys.DIR_CONFIG, read_only=True),
            core.mount(keys.VOLUME_RUN, keys.DIR_RUN),
            core.mount(keys.VOLUME_STATE, state_dir(controller)),
            _AUTH_SOCKET,
            core.mount(keys.VOLUME_LOGFILE, keys.DIR_LOG),
        ],
    )
    return pods.container(base, controller.spec.slurmctld, "spec.slurmctld")


def _reconfigure(controller: Controller) -> JsonObject:
    base = core.Container(
        name="reconfigure",
        command=["tini", "-g", "--", "bash", "-c", scripts.RECONFIGURE],
        restartPolicy="Always",
        volumeMounts=[
            core.mount(keys.VOLUME_ETC, keys.DIR_CONFIG, read_only=True),
            core.mount(keys.VOLUME_AUTH_SOCKET, keys.DIR_AUTH_SOCKET, read_only=True),
        ],
    )
    return pods.container(base, controller.spec.reconfigure, "spec.reconfigure")


def _existing_claim(controller: Controller) -> str:
    persistence = controller.spec.persistence
    return persistence.existing_claim if persistence and persistence.enabled else ""


def _needs_claim_template(controller: Controller) -> bool:
    return controller.persistence_enabled and not _existing_claim(controller)


def _state_volumes(controller: Controller) -> list[JsonObject]:
    claim = _existing_claim(controller)
    if controller.spec.ha.enabled and not claim:
        raise BuildError(
            "spec.persistence.existingClaim",
            "backups need a claim that all of them can write (ReadWriteMany)",
        )
    if claim:
        source = core.PersistentVolumeClaimVolumeSource(claimName=claim)
        return [core.plain(core.Volume(name=keys.VOLUME_STATE, persistentVolumeClaim=source))]
    if controller.persistence_enabled:
        return []
    return [core.plain(core.empty_dir(keys.VOLUME_STATE))]


def _claim_template(controller: Controller) -> JsonObject:
    persistence = controller.spec.persistence
    wanted: dict[str, Any] = msgspec.to_builtins(persistence) if persistence else {}
    spec = {name: value for name, value in wanted.items() if name not in {"enabled", "existingClaim"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": keys.VOLUME_STATE, "namespace": controller.metadata.namespace},
        "spec": spec,
    }


def _endpoints(monitor: ServiceMonitor, service: str) -> list[JsonObject]:
    wanted = monitor.endpoints or [Endpoint(path=path) for path in _METRICS_PATHS]
    return [_endpoint(monitor, endpoint, service) for endpoint in wanted]


def _endpoint(monitor: ServiceMonitor, endpoint: Endpoint, service: str) -> JsonObject:
    times = {
        "interval": endpoint.interval or monitor.interval,
        "scrapeTimeout": endpoint.scrape_timeout or monitor.scrape_timeout,
    }
    # The selector matches both Services; through one of them each slurmctld is scraped once (Q10).
    only = {"sourceLabels": ["__meta_kubernetes_service_name"], "action": "keep", "regex": service}
    return {
        "port": keys.SLURMCTLD,
        "path": endpoint.path,
        "scheme": "http",
        "relabelings": [only],
        **{name: value for name, value in times.items() if value},
    }
