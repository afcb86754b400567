"""What the operator is given: a Slurm cluster that runs elsewhere, and a NodeSet."""

import base64
from typing import Any

from benchmarks.scale.world import World, digits
from coil.api.keys import PORT_SLURMCTLD
from coil.api.meta import API_VERSION

NAMESPACE, NODESET, CLUSTER = "scale", "sim", "scale"
ALIKE = "alike"
"""Namespace of bare pods like the workers."""
IMAGES = ("registry.example/slurmd:1", "registry.example/slurmd:2")


def objects(made: World, count: int) -> list[dict[str, Any]]:
    """An external Slurm cluster and a NodeSet without workers."""
    key = {"name": "keys", "key": "jwt.key"}
    data = {"jwt.key": base64.b64encode(made.cluster.jwt_key).decode()}
    data["slurm.key"] = base64.b64encode(b"unused by an external controller").decode()
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": data},
        _ours(
            "Controller",
            CLUSTER,
            external=True,
            externalConfig={"host": "127.0.0.1", "port": PORT_SLURMCTLD},
            slurmKeyRef={**key, "key": "slurm.key"},
            jwtKeyRef=key,
            slurmctld={"image": "registry.example/slurmctld:1"},
        ),
        _ours(
            "RestApi",
            CLUSTER,
            controllerRef={"name": CLUSTER},
            slurmrestd={"image": "registry.example/slurmrestd:1"},
        ),
        _ours(
            "NodeSet",
            NODESET,
            controllerRef={"name": CLUSTER},
            replicas=0,
            ordinalPadding=digits(count),
            slurmd={"image": IMAGES[0]},
            logfile={"image": "registry.example/tools:1"},
            updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
        ),
    ]


def _ours(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
