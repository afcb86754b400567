"""The objects of a LoginSet (spec: control-plane 8).

    ssh_config(loginset)                       # ConfigMap
    service(loginset)
    deployment(loginset, inputs)
    host_keys(loginset, files)                 # Secret; made once, never again

Pure; each returns a manifest. BuildError says which member makes an object impossible.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from coil.api import keys, names
from coil.api.controller import Controller
from coil.api.loginset import LoginSet
from coil.build import core, metadata, pods, scripts, templates
from coil.build import service as services
from coil.build.errors import BuildError
from coil.build.hashes import byte_hash
from coil.build.worker import conf_server
from coil.support.conftext import Section, render
from coil.support.objects import JsonObject

NOT_IN_PODS = frozenset({"extraSshdConfig", "replicas", "rootSshAuthorizedKeys", "service", "strategy"})
"""Members of `spec` that the pod template does not depend on, or by a hash of the file only."""

AUTHORIZED_KEYS = "authorized_keys"
HOST_KEYS = tuple(
    f"ssh_host_{kind}_key{part}" for kind in ("rsa", "ed25519", "ecdsa") for part in ("", ".pub")
)
"""Files of the host keys, in the order in which they are mounted."""

_SECRET_MODE = 0o600
_PUBLIC_MODE = 0o644


class PodInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What login pods depend on besides the LoginSet.

    Attributes:
        controller: The Controller that the LoginSet refers to.
        cluster_domain: DNS domain of the cluster.
        host_keys_hash: Map hash of the Secret with the host keys.
        sssd_conf: The value named by `sssdConfRef`, None when it is missing.
    """

    controller: Controller
    cluster_domain: str = names.DEFAULT_DOMAIN
    host_keys_hash: str = ""
    sssd_conf: bytes | None = None


def labels(loginset: LoginSet) -> dict[str, str]:
    """The operator's labels of everything that belongs to the LoginSet."""
    return names.operator_labels(keys.LOGIN, loginset.metadata.name, keys.COMPONENT_LOGIN)


def selector(loginset: LoginSet) -> dict[str, str]:
    """The labels that select the login pods."""
    return names.selector_labels(keys.LOGIN, loginset.metadata.name)


def sshd_config(loginset: LoginSet) -> str:
    """The text of sshd_config."""
    general = [
        "Include /etc/ssh/sshd_config.d/*.conf",
        "UsePAM yes",
        "X11Forwarding yes",
        "Subsystem sftp internal-sftp",
    ]
    return render([Section("GENERAL", general), Section("EXTRA CONFIG", [loginset.spec.extra_sshd_config])])


def ssh_config(loginset: LoginSet) -> JsonObject:
    """The ConfigMap with sshd_config and root's authorized keys."""
    root_keys = render([Section("SLINKY", [loginset.spec.root_ssh_authorized_keys])])
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(loginset, names.ssh_config(loginset.metadata.name)),
        "data": {AUTHORIZED_KEYS: root_keys, keys.FILE_SSHD_CONFIG: sshd_config(loginset)},
        "immutable": False,
    }


def host_keys(loginset: LoginSet, files: Mapping[str, str]) -> JsonObject:
    """The Secret with the host keys. It is never changed: clients remember the keys."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(loginset, names.ssh_host_keys(loginset.metadata.name)),
        "type": "Opaque",
        "stringData": dict(files),
        "immutable": True,
    }


def service(loginset: LoginSet) -> JsonObject:
    """The Service for ssh."""
    wanted = loginset.spec.service
    name = names.loginset(loginset.metadata.name)
    meta = _metadata(loginset, name, wanted.metadata.labels, wanted.metadata.annotations)
    return services.service(meta, wanted, keys.LOGIN, keys.PORT_SSH, selector(loginset))


def deployment(loginset: LoginSet, inputs: PodInputs) -> JsonObject:
    """The Deployment of the login pods.

    Raises:
        BuildError: the Controller has no slurmKeyRef, or an override has the wrong type.
    """
    name = names.loginset(loginset.metadata.name)
    template = loginset.spec.template.metadata
    operator = {
        keys.ANNOTATION_SSH_HOST_KEYS_HASH: inputs.host_keys_hash,
        keys.ANNOTATION_SSHD_CONF_HASH: byte_hash(sshd_config(loginset).encode()),
        keys.ANNOTATION_SSSD_CONF_HASH: byte_hash(inputs.sssd_conf),
        keys.ANNOTATION_DEFAULT_CONTAINER: keys.LOGIN,
    }
    pod_metadata = metadata.template_metadata(
        name,
        loginset,
        [loginset.metadata.labels, template.labels, labels(loginset)],
        [loginset.metadata.annotations, template.annotations, operator],
    )
    spec: JsonObject = {
        "replicas": loginset.spec.replicas,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": selector(loginset)},
        "template": {"metadata": pod_metadata, "spec": _pod_spec(loginset, inputs)},
    }
    if loginset.spec.strategy is not None:
        spec["strategy"] = msgspec.to_builtins(loginset.spec.strategy)
    manifest: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(loginset, name, template.labels, template.annotations),
        "spec": spec,
    }
    return templates.marked(manifest, loginset, apart=NOT_IN_PODS, also=_of_cluster(inputs))


def _of_cluster(inputs: PodInputs) -> list[Any]:
    """What the pods take from the Controller and from the surroundings."""
    controller = inputs.controller
    key = msgspec.to_builtins(controller.spec.slurm_key_ref)
    return [controller.metadata.name, key, conf_server(controller), inputs.cluster_domain]


def _metadata(loginset: LoginSet, name: str, *added: dict[str, str]) -> JsonObject:
    more_labels, more_annotations = added or ({}, {})
    return metadata.object_metadata(
        name,
        loginset,
        [loginset.metadata.labels, more_labels, labels(loginset)],
        [loginset.metadata.annotations, more_annotations],
    )


def _pod_spec(loginset: LoginSet, inputs: PodInputs) -> JsonObject:
    workers = names.worker_service(inputs.controller.metadata.name)
    search = names.full_dns(workers, loginset.metadata.namespace, inputs.cluster_domain)
    base = core.PodSpec(
        containers=[],
        automountServiceAccountToken=False,
        enableServiceLinks=False,
        dnsConfig=core.PodDNSConfig(searches=[search]),
        volumes=_volumes(loginset, inputs.controller),
    )
    containers = [_login(loginset, inputs.controller)]
    return pods.pod_spec(
        base, containers, [_initconf(loginset, inputs.controller)], loginset.spec.template.spec
    )


def _volumes(loginset: LoginSet, controller: Controller) -> list[core.Volume]:
    key = controller.spec.slurm_key_ref
    if key is None:
        raise BuildError("spec.controllerRef", f"Controller {controller.metadata.name} has no slurmKeyRef")
    name, sssd = loginset.metadata.name, loginset.spec.sssd_conf_ref
    host_key_items = [core.KeyToPath(key=file, path=file, mode=_host_key_mode(file)) for file in HOST_KEYS]
    ssh_items = [
        core.KeyToPath(key=file, path=file, mode=_SECRET_MODE)
        for file in (keys.FILE_SSHD_CONFIG, AUTHORIZED_KEYS)
    ]
    sources = {
        keys.VOLUME_CONFIG: core.slurm_key_file(key),
        keys.VOLUME_SSH_HOST_KEYS: core.secret_files(names.ssh_host_keys(name), *host_key_items),
        keys.VOLUME_SSH_CONFIG: core.config_map_files(names.ssh_config(name), *ssh_items),
        keys.VOLUME_SSSD_CONF: core.secret_file(sssd.name, sssd.key, keys.FILE_SSSD_CONF, _SECRET_MODE),
    }
    return [
        core.memory_dir(keys.VOLUME_ETC),
        core.memory_dir(keys.VOLUME_SACKD),
        *(core.projected(volume, _SECRET_MODE, [source]) for volume, source in sources.items()),
    ]


def _host_key_mode(file: str) -> int:
    return _PUBLIC_MODE if file.endswith(".pub") else _SECRET_MODE


def _login(loginset: LoginSet, controller: Controller) -> JsonObject:
    base = core.Container(
        name=keys.LOGIN,
        env=[core.EnvVar(name="SACKD_OPTIONS", value=f"--conf-server {conf_server(controller)}")],
        ports=[core.ContainerPort(name=keys.LOGIN, containerPort=_ssh_port(loginset), protocol="TCP")],
        readinessProbe=core.Probe(exec=core.ExecAction(command=["test", "-S", keys.SACK_SOCKET])),
        volumeMounts=[
            core.mount(keys.VOLUME_ETC, keys.DIR_CONFIG, read_only=True),
            core.mount(keys.VOLUME_SACKD, keys.DIR_SACKD),
            *(_file(keys.VOLUME_SSH_HOST_KEYS, f"/etc/ssh/{file}") for file in HOST_KEYS),
            _file(keys.VOLUME_SSH_CONFIG, f"/etc/ssh/{keys.FILE_SSHD_CONFIG}"),
            _file(keys.VOLUME_SSH_CONFIG, f"/root/.ssh/{AUTHORIZED_KEYS}"),
            _file(keys.VOLUME_SSSD_CONF, f"/etc/sssd/{keys.FILE_SSSD_CONF}"),
        ],
    )
    return pods.container(base, loginset.spec.login, "spec.login")


def _file(volume: str, path: str) -> core.VolumeMount:
    return core.mount(volume, path, read_only=True, sub_path=path.rpartition("/")[2])


def _ssh_port(loginset: LoginSet) -> int:
    """The port that the user gave the name `login`, so that merging does not add a second one."""
    ports = loginset.spec.login.get("ports") or []
    own = [port.get("containerPort") for port in ports if port.get("name") == keys.LOGIN]
    return next((port for port in own if port), keys.PORT_SSH)


def _initconf(loginset: LoginSet, controller: Controller) -> JsonObject:
    key, script = controller.spec.slurm_key_ref, scripts.INITCONF
    if key is not None and core.slurm_key_path(key) == keys.FILE_SLURM_JWKS:
        script = script.replace("*.key", f"*{keys.FILE_SLURM_JWKS}")
    base = core.Container(
        name="initconf",
        command=["sh", "-c", script],
        env=[core.EnvVar(name="SLURM_USER", value=keys.SLURM_USER)],
        volumeMounts=[
            core.mount(keys.VOLUME_ETC, keys.DIR_STAGING_TARGET),
            core.mount(keys.VOLUME_CONFIG, keys.DIR_STAGING_SOURCE, read_only=True),
        ],
    )
    return pods.container(base, loginset.spec.initconf, "spec.initconf")
