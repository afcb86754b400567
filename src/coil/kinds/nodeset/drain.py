"""Why a worker is drained, and in which words Slurm is told (spec: nodeset 13).

The operator marks a pod that it cordons with the cause, in an annotation of its own, and undoes only
cordons so marked. A cordon without a cause is a user's (spec: nodeset 30, Q10 and Q11).
"""

import enum
import unicodedata

import msgspec

from coil.api import keys
from coil.api.meta import ObjectKey
from coil.kinds.nodeset.snapshot import Worker
from coil.kube.views import NodeView
from coil.support.reasons import REASON_PREFIX

MAX_REASON = 256
"""Code points of a reason that a user wrote on a node."""

NOT_RESPONDING = "Not responding"
"""slurmctld's own reason for a node that went silent. With ReturnToService=1 the node comes back by
itself only while it has this reason: it is never replaced."""

POD_TERMINATING = "slurm-operator: Pod is terminating"
"""The reason that a stopping worker gives while it sets its own node DOWN."""


class Cause(enum.Enum):
    """Why the operator cordons a pod; the value of annotation `pod-cordon-cause`."""

    SCALE_IN = "scale-in"
    SCALING_MODE = "scaling-mode"
    """The pod belongs to the scaling mode that the NodeSet had before."""
    UPDATE = "update"
    REPLACE = "replace"
    """Another pod is to take its place on the node: it has the wrong host name, or there are two."""
    NODE = "node"
    """The Kubernetes node is cordoned."""

    @property
    def condemns(self) -> bool:
        """The pod is to be deleted once it is drained."""
        return self is not Cause.NODE


_CAUSES = {cause.value: cause for cause in Cause}


def is_cordoned(worker: Worker) -> bool:
    """The pod is marked: its Slurm node is to be drained."""
    return worker.annotations.get(keys.ANNOTATION_POD_CORDON) == "true"


def own_cause(worker: Worker) -> Cause | None:
    """The cause of a cordon that the operator made; None when there is none or it is not ours."""
    if not is_cordoned(worker):
        return None
    return _CAUSES.get(worker.annotations.get(keys.ANNOTATION_POD_CORDON_CAUSE, ""))


def sanitise(text: str) -> str:
    """A user's text as one line that Slurm takes: no control characters, at most `MAX_REASON` long."""
    spaced = text.translate({ord(character): " " for character in "\t\r\n"})
    kept = "".join(character for character in spaced if unicodedata.category(character) != "Cc")
    return kept.strip()[:MAX_REASON].strip()


class Reason(msgspec.Struct, frozen=True, gc=False):
    """What to tell Slurm: words for one pod alone, and words that fit all pods drained for that cause."""

    own: str
    shared: str


def drain_reason(cause: Cause | None, worker: Worker, propagated: tuple[str, ...]) -> Reason:
    """The reason for draining this worker; a cause of None is a user's cordon."""
    pod = worker.pod.metadata.key
    if cause is Cause.NODE and worker.host is not None:
        return _node_reason(worker.host, pod, propagated)
    what = "pending termination for scale-in" if cause is not None else "cordoned"
    verb = "is" if cause is not None else "was"
    return _reason(f"Pod ({pod}) {verb} {what}", f"Pods of namespace ({pod.namespace}) are {what}")


def _node_reason(host: NodeView, pod: ObjectKey, propagated: tuple[str, ...]) -> Reason:
    given = host.metadata.annotations.get(keys.ANNOTATION_NODE_CORDON_REASON)
    if given is not None:
        return _reason(sanitise(given) or "unknown")
    found = (host.status.condition(kind) for kind in propagated)
    parts = [f"({c.reason}: {c.message})" for c in found if c is not None and c.status == "True"]
    if parts:
        return _reason("; ".join(parts))
    node = f"Node ({host.metadata.name}) was cordoned"
    return _reason(
        f"{node}, Pod ({pod}) must be cordoned", "Nodes were cordoned, their pods must be cordoned"
    )


def _reason(own: str, shared: str | None = None) -> Reason:
    return Reason(*(REASON_PREFIX + _plain(text) for text in (own, own if shared is None else shared)))


def _plain(text: str) -> str:
    """Without the characters by which `scontrol reboot` adds a reason of its own to ours."""
    return text.replace(" : ", ": ")
