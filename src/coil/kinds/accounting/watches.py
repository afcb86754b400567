"""Which Accountings a change concerns (spec: control-plane 11.1).

Beyond the reference: the Secret with the database password (Q7), the ConfigMap with the JWKS, the pod, whose
readiness is a condition, and other Accountings with the same database.
"""

from collections.abc import Iterable
from typing import Any

from coil.api import keys
from coil.api.accounting import Accounting
from coil.kinds.accounting.observe import DATABASE, Observer, database
from coil.kinds.accounting.plan import key_refs, password_ref
from coil.kinds.owners import owners
from coil.kinds.secrets import data_changed
from coil.kube.queue import Queue
from coil.kube.store import Change
from coil.kube.views import PodView
from coil.support.objects import ObjectKey

USES = "accounting/uses"
"""Index of Accountings by what they refer to: `<kind>/<namespace>/<name>`."""


def uses(accounting: Accounting) -> Iterable[str]:
    """Everything in its namespace that an Accounting refers to."""
    namespace, jwks = accounting.metadata.namespace, accounting.spec.jwks_key_ref
    for ref in (*key_refs(accounting), *filter(None, [password_ref(accounting)])):
        yield f"Secret/{namespace}/{ref.name}"
    if jwks is not None:
        yield f"ConfigMap/{namespace}/{jwks.name}"


def watch(observer: Observer, queue: Queue) -> None:
    """Add the keys of the Accountings that a change concerns to the queue."""
    accountings = observer.accountings
    accountings.add_index(USES, uses)

    def users(kind: str, change: Change[Any]) -> None:
        for accounting in accountings.by_index(USES, f"{kind}/{change.key}"):
            queue.add(accounting.metadata.key)

    def sharing(change: Change[Accounting]) -> None:
        queue.add(change.key)
        for value in databases(change):
            for other in accountings.by_index(DATABASE, value):
                queue.add(other.metadata.key)

    accountings.on_event(sharing)
    for children in (observer.services, observer.secrets, observer.stateful_sets):
        children.on_event(lambda change: queue.add_all(owners(change, "Accounting")))
    observer.secrets.on_event(lambda change: users("Secret", change) if data_changed(change) else None)
    observer.config_maps.on_event(lambda change: users("ConfigMap", change))
    observer.pods.on_event(lambda change: queue.add_all(accounting_of(change.latest)))


def databases(change: Change[Accounting]) -> set[str]:
    """The databases that an Accounting took or left with a change; none while it keeps the one it has."""
    before, after = (set(database(state)) if state else set() for state in (change.old, change.new))
    return before ^ after


def accounting_of(pod: PodView) -> Iterable[ObjectKey]:
    """The Accounting whose selector labels a pod has; none for other pods."""
    labels = pod.metadata.labels
    if labels.get(keys.LABEL_NAME) == keys.SLURMDBD and labels.get(keys.LABEL_INSTANCE):
        yield ObjectKey(pod.metadata.namespace, labels[keys.LABEL_INSTANCE])
