"""The Kubernetes types that the builders write, and the way from them to plain JSON.

Builders author small parts with these types, because a wrong member name is then a type error, and
turn them into dicts at once: merging, hashing and sending work on JSON.
"""

from typing import cast

import msgspec
from lightkube.models.core_v1 import (
    Capabilities,
    ConfigMapProjection,
    ConfigMapVolumeSource,
    Container,
    ContainerPort,
    EmptyDirVolumeSource,
    EnvVar,
    EnvVarSource,
    ExecAction,
    HTTPGetAction,
    KeyToPath,
    Lifecycle,
    LifecycleHandler,
    ObjectFieldSelector,
    PersistentVolumeClaimVolumeSource,
    PodDNSConfig,
    PodSecurityContext,
    PodSpec,
    Probe,
    ProjectedVolumeSource,
    SeccompProfile,
    SecretProjection,
    SecurityContext,
    ServicePort,
    TCPSocketAction,
    Toleration,
    Volume,
    VolumeMount,
    VolumeProjection,
)

from coil.api import keys
from coil.api.meta import SecretKeySelector
from coil.support.objects import JsonObject

__all__ = [
    "Capabilities",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "Container",
    "ContainerPort",
    "EmptyDirVolumeSource",
    "EnvVar",
    "EnvVarSource",
    "ExecAction",
    "HTTPGetAction",
    "KeyToPath",
    "Lifecycle",
    "LifecycleHandler",
    "ObjectFieldSelector",
    "PersistentVolumeClaimVolumeSource",
    "PodDNSConfig",
    "PodSecurityContext",
    "PodSpec",
    "Probe",
    "ProjectedVolumeSource",
    "SeccompProfile",
    "SecretProjection",
    "SecurityContext",
    "ServicePort",
    "TCPSocketAction",
    "Toleration",
    "Volume",
    "VolumeMount",
    "VolumeProjection",
    "config_map_files",
    "empty_dir",
    "http_probe",
    "memory_dir",
    "mount",
    "plain",
    "projected",
    "run_as",
    "secret_file",
    "secret_files",
    "tcp_probe",
]


def plain(value: msgspec.Struct) -> JsonObject:
    """The value as JSON, without what is not set."""
    return cast("JsonObject", msgspec.to_builtins(value))


def empty_dir(name: str) -> Volume:
    """A volume on the node's disk that lives as long as the pod."""
    return Volume(name=name, emptyDir=EmptyDirVolumeSource())


def memory_dir(name: str) -> Volume:
    """A volume in the node's memory that lives as long as the pod."""
    return Volume(name=name, emptyDir=EmptyDirVolumeSource(medium="Memory"))


def projected(name: str, mode: int, sources: list[VolumeProjection]) -> Volume:
    """A volume of files from Secrets and ConfigMaps; `mode` is the permission of files."""
    return Volume(name=name, projected=ProjectedVolumeSource(defaultMode=mode, sources=sources))


def secret_file(secret: str, key: str, path: str, mode: int | None = None) -> VolumeProjection:
    """One key of a Secret as a file."""
    return secret_files(secret, KeyToPath(key=key, path=path, mode=mode))


def slurm_key_file(ref: SecretKeySelector) -> VolumeProjection:
    """The slurm key; a key of the Secret that ends in `.jwks` holds several of them (docs: keys)."""
    return secret_file(ref.name, ref.key, slurm_key_path(ref))


def slurm_key_path(ref: SecretKeySelector) -> str:
    """Name of the file in which auth/slurm looks for it."""
    return keys.FILE_SLURM_JWKS if ref.key.endswith(".jwks") else keys.FILE_SLURM_KEY


def secret_files(secret: str, *items: KeyToPath) -> VolumeProjection:
    """Keys of a Secret as files."""
    return VolumeProjection(secret=SecretProjection(name=secret, items=list(items)))


def config_map_files(config_map: str, *items: KeyToPath) -> VolumeProjection:
    """Keys of a ConfigMap as files; all of them when none is named."""
    return VolumeProjection(configMap=ConfigMapProjection(name=config_map, items=list(items) or None))


def mount(volume: str, path: str, *, read_only: bool = False, sub_path: str | None = None) -> VolumeMount:
    """A volume, or one file of it, inside a container."""
    return VolumeMount(name=volume, mountPath=path, readOnly=read_only or None, subPath=sub_path)


def http_probe(path: str, port: str, *, failures: int | None = None) -> Probe:
    """Ask over HTTP on a named port; with `failures`, every 10 s until that many fail."""
    period = None if failures is None else 10
    return Probe(httpGet=HTTPGetAction(path=path, port=port), failureThreshold=failures, periodSeconds=period)


def tcp_probe(port: int, *, failures: int | None = None) -> Probe:
    """Connect to a port; with `failures`, every 10 s until that many fail."""
    period = None if failures is None else 10
    return Probe(tcpSocket=TCPSocketAction(port=port), failureThreshold=failures, periodSeconds=period)


def run_as(user: int, group: int) -> SecurityContext:
    """A container that runs as this user, never as root."""
    return SecurityContext(runAsNonRoot=True, runAsUser=user, runAsGroup=group)
