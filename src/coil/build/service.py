"""Services from what a user asks for and a port of coil's (spec: control-plane 3.5).

`externalIPs` is always dropped: with it the author of a custom resource could capture traffic to any
address (CVE-2020-8554).
"""

from collections import Counter
from collections.abc import Mapping

from lightkube.models.core_v1 import ServiceSpec

from coil.api.template import ServiceTemplate
from coil.build import typed
from coil.build.core import ServicePort, plain
from coil.build.errors import BuildError
from coil.build.metadata import fits_label
from coil.support.objects import JsonObject


def service(
    metadata: JsonObject,
    wanted: ServiceTemplate,
    port_name: str,
    default_port: int,
    selector: Mapping[str, str],
) -> JsonObject:
    """A Service of the user's kind with the daemon's port added.

    Raises:
        BuildError: ports clash, a member has the wrong type, or the name is too long.
    """
    spec = typed.struct(ServiceSpec, wanted.spec, "spec.service.spec")
    spec.pop("externalIPs", None)
    port = ServicePort(
        name=port_name,
        port=wanted.port or default_port,
        protocol="TCP",
        targetPort=port_name,
        nodePort=wanted.node_port or None,
    )
    ports = [*(spec.get("ports") or ()), plain(port)]
    _check_distinct(ports)
    merged_selector = {**spec.get("selector", {}), **selector}
    return _manifest(metadata, spec | {"ports": ports, "selector": merged_selector})


def early(manifest: JsonObject) -> JsonObject:
    """A Service that leads to pods which are not ready yet, unless its user says otherwise."""
    return manifest | {"spec": {"publishNotReadyAddresses": True, **manifest["spec"]}}


def headless(metadata: JsonObject, port_name: str, port: int, selector: Mapping[str, str]) -> JsonObject:
    """A Service that only gives pods their DNS names, ready or not.

    Raises:
        BuildError: the name is too long.
    """
    spec: JsonObject = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": dict(selector),
        "ports": [plain(ServicePort(name=port_name, port=port, protocol="TCP", targetPort=port_name))],
    }
    return _manifest(metadata, spec)


def _manifest(metadata: JsonObject, spec: JsonObject) -> JsonObject:
    fits_label(metadata["name"], "metadata.name")
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _check_distinct(ports: list[JsonObject]) -> None:
    for member in ("name", "port"):
        (value, count), *_ = Counter(port.get(member) for port in ports).most_common(1)
        if count > 1:
            raise BuildError("spec.service.spec.ports", f"{member} {value} occurs {count} times")
