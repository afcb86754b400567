"""What an Accounting's conditions say. Pure.

The reference fills no conditions; these three are coil's own:

| type | true when |
|---|---|
| Reconciled | every child object is as wanted |
| Available | slurmdbd has its database and can be reached |
| DatabaseExclusive | no other Accounting names the same database |
"""

from collections.abc import Sequence

from coil.api import names
from coil.api.meta import Condition
from coil.kinds.accounting.snapshot import Snapshot
from coil.kinds.podwaits import why_not_ready
from coil.kinds.status import AVAILABLE, Problem, condition, reconciled

DATABASE_EXCLUSIVE = "DatabaseExclusive"


def conditions(snapshot: Snapshot, problems: Sequence[Problem]) -> list[Condition]:
    """All conditions of an Accounting after a pass."""
    told = [reconciled(snapshot.accounting, problems), available(snapshot)]
    if not snapshot.accounting.spec.external:
        told.append(exclusive(snapshot))
    return told


def available(snapshot: Snapshot) -> Condition:
    """Whether slurmdbd's pod is ready: slurmdbd opens its port once it has reached its database.

    What slurmdbd says in its log is repeated, since nothing else tells of a refused password. Nobody here
    knows of an external slurmdbd.
    """
    accounting, pod = snapshot.accounting, snapshot.pod
    if accounting.spec.external:
        return condition(accounting, AVAILABLE, "Unknown", "External", "slurmdbd runs outside Kubernetes")
    name = names.accounting(accounting.metadata.name)
    if pod is None:
        return condition(accounting, AVAILABLE, "False", "NoPod", "there is no slurmdbd pod yet")
    if pod.terminating:
        message = f"pod {pod.metadata.name} is being replaced"
        return condition(accounting, AVAILABLE, "False", "Terminating", message)
    if pod.ready:
        return condition(accounting, AVAILABLE, "True", "Ready", f"slurmdbd can be reached at {name}")
    reason, why = why_not_ready(pod)
    if snapshot.complaint:
        why = f"{why}; slurmdbd says: {snapshot.complaint}"
    return condition(accounting, AVAILABLE, "False", reason, f"pod {pod.metadata.name} is not ready{why}")


def exclusive(snapshot: Snapshot) -> Condition:
    """Two slurmdbd on one database destroy each other's records; it is told, nobody is stopped."""
    accounting = snapshot.accounting
    if not snapshot.sharing:
        message = "no other Accounting names this database"
        return condition(accounting, DATABASE_EXCLUSIVE, "True", "Exclusive", message)
    others = ", ".join(map(str, sorted(snapshot.sharing)))
    message = (
        f"the database of spec.storageConfig is also that of Accounting {others}; give each its own database,"
        " or let one refer to the other's slurmdbd by spec.external"
    )
    return condition(accounting, DATABASE_EXCLUSIVE, "False", "Shared", message)
