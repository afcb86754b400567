"""The pod spec of workers, the same for all pods of a NodeSet (spec: nodeset 5.3 to 5.7)."""

import msgspec

from coil.api import keys, names
from coil.api.controller import Controller
from coil.api.nodeset import NodeSet
from coil.build import core, pods, quantity, scripts, typed
from coil.build.errors import BuildError
from coil.build.nodeconf import quoted_conf
from coil.support.objects import JsonObject

_FILE_MODE = 0o600
_PROBE_FAILURES = 6
_CAPABILITIES = ("BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE")
_ONE_PER_NODE = {"matchExpressions": [{"key": keys.LABEL_NAME, "operator": "In", "values": [keys.SLURMD]}]}


class PodInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What worker pods depend on besides the NodeSet.

    Attributes:
        controller: The Controller that the NodeSet refers to.
        cluster_domain: DNS domain of the cluster.
        sssd_conf: The value named by `ssh.sssdConfRef`, None when it is missing.
    """

    controller: Controller
    cluster_domain: str = names.DEFAULT_DOMAIN
    sssd_conf: bytes | None = None


def pod_spec(nodeset: NodeSet, inputs: PodInputs) -> JsonObject:
    """What the spec of every pod of the NodeSet starts from.

    Raises:
        BuildError: an override has a member of the wrong type, or the Controller names no key.
    """
    service = names.worker_service(nodeset.spec.controller_ref.name)
    search = names.full_dns(service, nodeset.metadata.namespace, inputs.cluster_domain)
    base = core.PodSpec(
        containers=[],
        automountServiceAccountToken=False,
        enableServiceLinks=False,
        subdomain=service,
        dnsConfig=core.PodDNSConfig(searches=[search]),
        tolerations=[core.Toleration(key=keys.TAINT_WORKER, operator="Equal", effect="NoExecute")],
        volumes=_volumes(nodeset, inputs.controller),
    )
    sidecars = [pods.log_sidecar(keys.LOG_SLURMD, nodeset.spec.logfile)]
    merged = pods.pod_spec(base, [_slurmd(nodeset, inputs)], sidecars, nodeset.spec.template.spec)
    return merged if nodeset.spec.oversubscribe_node else pods.keep_apart(merged, _ONE_PER_NODE)


def _volumes(nodeset: NodeSet, controller: Controller) -> list[core.Volume]:
    key = controller.spec.slurm_key_ref
    if key is None:
        raise BuildError("spec.controllerRef", f"Controller {controller.metadata.name} has no slurmKeyRef")
    volumes = [
        core.projected(keys.VOLUME_ETC, _FILE_MODE, [core.slurm_key_file(key)]),
        core.memory_dir(keys.VOLUME_LOGFILE),
    ]
    ssh = nodeset.spec.ssh
    if ssh.enabled:
        sshd = core.KeyToPath(key=keys.FILE_SSHD_CONFIG, path=keys.FILE_SSHD_CONFIG, mode=_FILE_MODE)
        sshd_source = core.config_map_files(names.ssh_config(nodeset.metadata.name), sshd)
        sssd_source = core.secret_file(
            ssh.sssd_conf_ref.name, ssh.sssd_conf_ref.key, keys.FILE_SSSD_CONF, _FILE_MODE
        )
        volumes += [
            core.projected(keys.VOLUME_SSH_CONFIG, _FILE_MODE, [sshd_source]),
            core.projected(keys.VOLUME_SSSD_CONF, _FILE_MODE, [sssd_source]),
        ]
    return volumes


def _slurmd(nodeset: NodeSet, inputs: PodInputs) -> JsonObject:
    base = core.Container(
        name=keys.SLURMD,
        args=["-Z", "--conf-server", conf_server(inputs.controller), "--conf", quoted_conf(nodeset)],
        ports=_ports(nodeset),
        env=_environment(nodeset),
        startupProbe=core.http_probe("/livez", keys.SLURMD, failures=_PROBE_FAILURES),
        livenessProbe=core.http_probe("/livez", keys.SLURMD, failures=_PROBE_FAILURES),
        readinessProbe=core.http_probe("/readyz", keys.SLURMD),
        securityContext=core.SecurityContext(
            privileged=True, capabilities=core.Capabilities(add=list(_CAPABILITIES))
        ),
        lifecycle=core.Lifecycle(
            preStop=core.LifecycleHandler(
                exec=core.ExecAction(command=["/usr/bin/sh", "-c", scripts.GOODBYE])
            )
        ),
        volumeMounts=_mounts(nodeset),
    )
    return pods.container(base, nodeset.spec.slurmd, "spec.slurmd")


def conf_server(controller: Controller) -> str:
    """Where slurmd and sackd fetch their configuration: `host:port`."""
    external = controller.spec.external_config
    if controller.spec.external and external is not None:
        return f"{external.host}:{external.port}"
    service = names.controller(controller.metadata.name)
    return f"{names.short_dns(service, controller.metadata.namespace)}:{keys.PORT_SLURMCTLD}"


def _ports(nodeset: NodeSet) -> list[core.ContainerPort]:
    ports = [core.ContainerPort(name=keys.SLURMD, containerPort=keys.PORT_SLURMD, protocol="TCP")]
    if nodeset.spec.ssh.enabled:
        ports.append(core.ContainerPort(name="ssh", containerPort=keys.PORT_SSH, protocol="TCP"))
    return ports


def _mounts(nodeset: NodeSet) -> list[core.VolumeMount]:
    mounts = [
        core.mount(keys.VOLUME_ETC, keys.DIR_CONFIG, read_only=True),
        core.mount(keys.VOLUME_LOGFILE, keys.DIR_LOG),
    ]
    if nodeset.spec.ssh.enabled:
        sshd, sssd = keys.FILE_SSHD_CONFIG, keys.FILE_SSSD_CONF
        mounts += [
            core.mount(keys.VOLUME_SSH_CONFIG, f"/etc/ssh/{sshd}", read_only=True, sub_path=sshd),
            core.mount(keys.VOLUME_SSSD_CONF, f"/etc/sssd/{sssd}", read_only=True, sub_path=sssd),
        ]
    return mounts


def _environment(nodeset: NodeSet) -> list[core.EnvVar]:
    field = core.ObjectFieldSelector(fieldPath=f"metadata.annotations['{keys.ANNOTATION_TOPOLOGY}']")
    cpu, memory = _limit(nodeset, "cpu"), _limit(nodeset, "memory")
    return [
        core.EnvVar(name="SLINKY_TOPOLOGY", valueFrom=core.EnvVarSource(fieldRef=field)),
        core.EnvVar(name="POD_CPUS", value=str(quantity.whole(cpu))),
        core.EnvVar(name="POD_MEMORY", value=str(quantity.mebibytes(memory))),
    ]


def _limit(nodeset: NodeSet, resource: str) -> str:
    """The slurmd container's limit, or else the pod's; 0 when there is none."""
    container = typed.container(nodeset.spec.slurmd, "spec.slurmd")
    pod = typed.pod_spec(nodeset.spec.template.spec, "spec.template.spec")
    for holder in (container, pod):
        limit = holder.get("resources", {}).get("limits", {}).get(resource, "0")
        if limit != "0":
            return limit
    return "0"
