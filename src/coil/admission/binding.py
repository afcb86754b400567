"""The webhook on pods/binding (spec: control-plane 13.7): a worker gets its node's topology before it starts.

It changes no binding: it writes the annotation from which the kubelet fills a variable of slurmd. Nothing
but a pod that does not exist refuses a binding: whatever fails here is made good by the operator once the
node has registered, and a webhook that cannot reach the API server must not stop pods (I5).
"""

import msgspec

from coil.admission.review import FORBIDDEN, Answer, Request
from coil.api import keys
from coil.kube.client import Client
from coil.kube.core import NODES, PODS
from coil.kube.errors import ApiError, NotFound
from coil.kube.views import PodView
from coil.support.log import get_logger

log = get_logger("binding")


class Target(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a pod is bound to."""

    kind: str = ""
    name: str = ""


class _Binding(msgspec.Struct, frozen=True, kw_only=True):
    target: Target = Target()


async def answer(request: Request, client: Client) -> Answer:
    """Copy the topology of the target node to a worker pod."""
    if request.dry_run or not request.name or not request.namespace:
        return Answer()
    try:
        pod = await client.get(PODS, request.name, request.namespace)
        if pod.metadata.labels.get(keys.LABEL_NAME) == keys.SLURMD:
            await _hand_over(pod, _target(request), client)
    except NotFound as error:
        return Answer(code=FORBIDDEN, message=error.message or str(error))
    except ApiError as error:
        pod_key = f"{request.namespace}/{request.name}"
        log.warning("topology not handed over", pod=pod_key, error=str(error))
        return Answer(warnings=[f"pod {pod_key} did not get its node's topology: {error.message or error}"])
    return Answer()


def _target(request: Request) -> Target:
    try:
        return msgspec.convert(request.object or {}, _Binding).target
    except msgspec.ValidationError:  # the API server will refuse it
        return Target()


async def _hand_over(pod: PodView, target: Target, client: Client) -> None:
    """Write the node's annotation on the pod, empty where the node has none; a node or pod may be gone."""
    if target.kind not in ("", "Node") or not target.name:
        return
    try:
        node = await client.get(NODES, target.name)
        topology = node.metadata.annotations.get(keys.ANNOTATION_TOPOLOGY, "")
        if pod.metadata.annotations.get(keys.ANNOTATION_TOPOLOGY) != topology:
            body = {"metadata": {"annotations": {keys.ANNOTATION_TOPOLOGY: topology}}}
            await client.patch(PODS, pod.metadata.name, body, pod.metadata.namespace)
    except NotFound:
        return
