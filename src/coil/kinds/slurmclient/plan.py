"""Which slurmrestd serves a cluster, and what its client needs (spec: control-plane 10). Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from coil.api import keys, names
from coil.api.controller import Controller
from coil.api.restapi import RestApi
from coil.kinds.references import missing_key

DEBUG_URL = f"http://localhost:{keys.PORT_SLURMRESTD}"
"""Used with DEBUG=1 in the operator's environment: a port forwarded by a developer."""


class MissingKeyError(Exception):
    """The JWT key cannot be read: says which Secret or key is missing."""


class Access(msgspec.Struct, frozen=True, gc=False):
    """What is needed to speak with a cluster: where, with which key tokens are signed, and who must answer.

    `cluster_name` is the Slurm ClusterName, "" when it is not known.
    """

    base_url: str
    key: bytes
    cluster_name: str = ""


def serving(controller: Controller, restapis: Iterable[RestApi]) -> RestApi | None:
    """The RestApi to use: of those that refer to the Controller the oldest, then the first by name."""
    name, namespace = controller.metadata.name, controller.metadata.namespace
    candidates = [
        restapi
        for restapi in restapis
        if restapi.metadata.namespace == namespace and restapi.spec.controller_ref.name == name
    ]
    return min(candidates, key=_age, default=None)


def access(
    controller: Controller,
    restapis: Iterable[RestApi],
    secret: Mapping[str, bytes] | None,
    environment: Mapping[str, str],
) -> Access | None:
    """How to reach the cluster; None when no RestApi serves it.

    Args:
        controller: of the cluster; external ones too.
        restapis: any RestApis, those of other clusters included.
        secret: the data of the Secret that holds the JWT key, None when there is no such Secret.
        environment: of the operator's process.

    Raises:
        MissingKeyError: the JWT key cannot be read.
    """
    restapi = serving(controller, restapis)
    if restapi is None or controller.metadata.deletion_timestamp is not None:
        return None
    return Access(_base_url(restapi, environment), _key(controller, secret), expected_name(controller))


def expected_name(controller: Controller) -> str:
    """The ClusterName with which answers come; "" when the objects do not tell it.

    Nobody told us that of an external cluster without `clusterName`. `extraConf` may set another, here or in
    a file it includes: Slurm takes the last one.
    """
    if controller.spec.external:
        return controller.spec.cluster_name
    extra = controller.spec.extra_conf.casefold()
    return "" if "clustername" in extra or "include" in extra else controller.cluster_name


def _age(restapi: RestApi) -> tuple[str, str]:
    return restapi.metadata.creation_timestamp, restapi.metadata.name


def _base_url(restapi: RestApi, environment: Mapping[str, str]) -> str:
    """The port is fixed: `service.port` is for others (spec: control-plane 21 Q16)."""
    if environment.get("DEBUG") == "1":
        return DEBUG_URL
    host = names.short_dns(names.restapi(restapi.metadata.name), restapi.metadata.namespace)
    return f"http://{host}:{keys.PORT_SLURMRESTD}"


def _key(controller: Controller, secret: Mapping[str, bytes] | None) -> bytes:
    ref = controller.jwt_ref
    if ref is None:
        raise MissingKeyError("spec.jwtKeyRef is not set: without it no token for Slurm can be signed")
    if (missing := missing_key(ref, secret, needs_text=True)) is not None:
        raise MissingKeyError(missing.message)
    return (secret or {})[ref.key]
