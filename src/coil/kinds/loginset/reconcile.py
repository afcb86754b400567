"""One pass over a LoginSet: observe, plan, act, report (spec: control-plane 8 and 11.2)."""

from collections.abc import Sequence

import msgspec

from coil.api import names
from coil.kinds import steps
from coil.kinds.children import Children
from coil.kinds.frame import control, outcome
from coil.kinds.loginset import plan
from coil.kinds.loginset.observe import Observer
from coil.kinds.loginset.plan import Snapshot
from coil.kinds.loginset.watches import watch
from coil.kinds.record import Record
from coil.kinds.resources import LOGINSETS
from coil.kinds.runtime import Runtime
from coil.kinds.status import Problem, StatusMembers, is_news, status_change, write_status
from coil.kinds.steps import record_problems
from coil.kube import core
from coil.kube.client import Client
from coil.kube.controller import DONE, Result
from coil.kube.errors import NotFound
from coil.support.clock import utc_now
from coil.support.log import get_logger
from coil.support.objects import ObjectKey

NAME = "loginset-controller"

log = get_logger(NAME)


def register(runtime: Runtime) -> None:
    """Reconcile LoginSets."""
    observer = Observer(runtime)
    reconciler = Reconciler(observer, runtime.client, runtime.recorder(NAME, LOGINSETS))
    watch(observer, control(runtime, NAME, "loginset", reconciler.reconcile, observer.stores))


class Reconciler:
    """Brings the children and the status of a LoginSet in line with its spec."""

    def __init__(self, observer: Observer, client: Client, record: Record) -> None:
        self._observer = observer
        self._client = client
        self._record = record
        self._children = Children(client, record)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass.

        Raises:
            PassFailedError: a step failed in a way that trying again may cure.
            ApiError: host keys or status could not be read or written.
        """
        snapshot = self._observer.snapshot(key)
        if snapshot is None or snapshot.loginset.metadata.deletion_timestamp is not None:
            return DONE
        if plan.needs_host_keys(snapshot):
            snapshot = await self._with_host_keys(snapshot)
        problems = await steps.run(self._children, snapshot.loginset, plan.steps(snapshot))
        await self._report(snapshot, problems)
        return outcome(problems)

    async def _with_host_keys(self, snapshot: Snapshot) -> Snapshot:
        """The host keys that the server has though the cache does not know them yet, or else new ones.

        Clients remember host keys, so "there are none" has to come from the server itself.
        """
        namespace, name = snapshot.loginset.metadata.key
        try:
            found = await self._client.get(core.SECRETS, names.ssh_host_keys(name), namespace)
        except NotFound:
            log.info("making ssh host keys")
            from coil.kinds.loginset import hostkeys  # noqa: PLC0415 -- 8 MB that few need

            return msgspec.structs.replace(snapshot, new_host_keys=await hostkeys.generate())
        return msgspec.structs.replace(snapshot, host_keys=found)

    async def _report(self, snapshot: Snapshot, problems: Sequence[Problem]) -> None:
        loginset = snapshot.loginset
        live, wanted = loginset.status.conditions, plan.conditions(snapshot, problems)
        if is_news(live, wanted[0]):
            self._tell(snapshot, problems)
        told = {"replicas": loginset.status.replicas, "selector": loginset.status.selector}
        members = StatusMembers(live=told, wanted=plan.status(snapshot))
        await write_status(self._client, LOGINSETS, loginset, status_change(live, wanted, utc_now(), members))

    def _tell(self, snapshot: Snapshot, problems: Sequence[Problem]) -> None:
        if snapshot.controller is not None:
            record_problems(self._record, snapshot.loginset, problems)
            return
        key = f"{snapshot.loginset.metadata.namespace}/{snapshot.loginset.spec.controller_ref.name}"
        note = f"Failed to get Controller ({key}): {problems[0].message}"
        self._record(snapshot.loginset, "Warning", "ControllerRefFailed", "Sync", note)
