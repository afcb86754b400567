"""How a worker pod and its Slurm node know each other (spec: nodeset 4)."""

import msgspec

from coil.api import keys
from coil.api.nodeset import NodeSet
from coil.kube.views import PodView

MODE_STATEFUL_SET = "StatefulSet"


class PodInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which pod a Slurm node is; kept as JSON in the node's comment, with this order of members."""

    namespace: str
    pod_name: str
    node: str
    node_set_name: str = ""
    node_set_uid: str = msgspec.field(name="nodeSetUID", default="")


_decoder = msgspec.json.Decoder(PodInfo)


def slurm_name(pod: PodView) -> str:
    """Name under which the pod registers in Slurm; empty while it is not known yet."""
    if pod.metadata.labels.get(keys.LABEL_SCALING_MODE) == MODE_STATEFUL_SET:
        if pod.spec.host_network:
            return pod.spec.node_name
        return pod.spec.hostname or pod.metadata.name
    return pod.spec.hostname


def pod_info(nodeset: NodeSet, pod: PodView) -> PodInfo:
    """The info that the comment of the pod's Slurm node must hold."""
    return PodInfo(
        namespace=pod.metadata.namespace,
        pod_name=pod.metadata.name,
        node=pod.spec.node_name,
        node_set_name=nodeset.metadata.name,
        node_set_uid=nodeset.metadata.uid,
    )


def encode_comment(info: PodInfo) -> str:
    """One line of JSON without blanks."""
    return msgspec.json.encode(info).decode()


def decode_comment(comment: str) -> PodInfo | None:
    """The info in a comment; None when somebody else wrote it."""
    try:
        return _decoder.decode(comment)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
