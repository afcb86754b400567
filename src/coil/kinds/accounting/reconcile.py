"""One pass over an Accounting: observe, plan, act, report (spec: control-plane 6 and 11.2)."""

from collections.abc import Sequence

from coil.api.meta import Condition
from coil.kinds import steps
from coil.kinds.accounting import plan, report
from coil.kinds.accounting.observe import Observer
from coil.kinds.accounting.snapshot import Snapshot
from coil.kinds.accounting.watches import watch
from coil.kinds.children import Children
from coil.kinds.frame import control, outcome
from coil.kinds.record import Record
from coil.kinds.resources import ACCOUNTINGS
from coil.kinds.runtime import Runtime
from coil.kinds.status import AVAILABLE, Problem, is_news, status_change, write_status
from coil.kinds.steps import record_problems
from coil.kube.client import Client
from coil.kube.controller import DONE, After, Result
from coil.support.clock import utc_now
from coil.support.objects import ObjectKey

NAME = "accounting-controller"

STARTING_S = 5.0
"""While slurmdbd is not ready: time between two looks into its log. It tries its database each 5 s."""


def register(runtime: Runtime) -> None:
    """Reconcile Accountings."""
    observer = Observer(runtime)
    reconciler = Reconciler(observer, runtime.client, runtime.recorder(NAME, ACCOUNTINGS))
    watch(observer, control(runtime, NAME, "accounting", reconciler.reconcile, observer.stores))


class Reconciler:
    """Brings the children and conditions of an Accounting in line with its spec."""

    def __init__(self, observer: Observer, client: Client, record: Record) -> None:
        self._observer = observer
        self._client = client
        self._record = record
        self._children = Children(client, record)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass.

        Raises:
            PassFailedError: a step failed in a way that trying again may cure.
        """
        snapshot = await self._observer.snapshot(key)
        if snapshot is None or snapshot.accounting.metadata.deletion_timestamp is not None:
            return DONE
        accounting = snapshot.accounting
        problems = await steps.run(self._children, accounting, plan.steps(snapshot))
        wanted = report.conditions(snapshot, problems)
        self._events(snapshot, problems, wanted)
        live = accounting.status.conditions
        await write_status(self._client, ACCOUNTINGS, accounting, status_change(live, wanted, utc_now()))
        return outcome(problems, _next(wanted))

    def _events(self, snapshot: Snapshot, problems: Sequence[Problem], wanted: Sequence[Condition]) -> None:
        """Events for what the conditions say anew and a person should act on."""
        accounting, live = snapshot.accounting, snapshot.accounting.status.conditions
        if is_news(live, wanted[0]):
            record_problems(self._record, accounting, problems)
        for told in wanted:
            if told.type == report.DATABASE_EXCLUSIVE and told.status == "False" and is_news(live, told):
                self._record(accounting, "Warning", "DatabaseShared", "Sync", told.message)


def _next(wanted: Sequence[Condition]) -> Result:
    starting = any(told.type == AVAILABLE and told.status == "False" for told in wanted)
    return After(STARTING_S) if starting else DONE
