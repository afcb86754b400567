"""From a child's change to the custom resources that own it."""

from typing import Any

from coil.api.meta import GROUP
from coil.kube.resource import KubeObject
from coil.kube.store import Change
from coil.support.objects import ObjectKey


def owners(change: Change[Any], kind: str) -> set[ObjectKey]:
    """The objects of one of our kinds that control, or controlled before the change, a child."""
    states: list[KubeObject] = [state for state in (change.old, change.new) if state is not None]
    references = ((state.metadata.namespace, state.metadata.controller) for state in states)
    return {
        ObjectKey(namespace, owner.name)
        for namespace, owner in references
        if owner is not None and owner.kind == kind and owner.api_version.startswith(f"{GROUP}/")
    }
