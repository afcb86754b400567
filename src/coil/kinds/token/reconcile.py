"""One pass over a Token: observe, plan, act, report (spec: control-plane 9 and 11.2)."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from coil.kinds import steps
from coil.kinds.children import Children
from coil.kinds.frame import control, outcome
from coil.kinds.record import Record
from coil.kinds.resources import TOKENS
from coil.kinds.runtime import Runtime
from coil.kinds.status import Problem, is_news, status_change, write_status
from coil.kinds.steps import Apply, record_problems
from coil.kinds.token import report
from coil.kinds.token.observe import Observer
from coil.kinds.token.plan import Plan, Snapshot, decide, wanted
from coil.kinds.token.watches import watch
from coil.kube import core
from coil.kube.client import Client
from coil.kube.controller import DONE, After, Result
from coil.kube.errors import NotFound
from coil.kube.views import ManifestView, SecretView
from coil.slurm.tokens import Claims, mint, verify
from coil.support.log import get_logger
from coil.support.objects import ObjectKey

NAME = "token-controller"
SERIES = "token"
"""Its label in the metrics, as the reference has it (spec: control-plane 11.1)."""

log = get_logger(NAME)


def register(runtime: Runtime) -> None:
    """Reconcile Tokens."""
    observer = Observer(runtime)
    reconciler = Reconciler(observer, runtime.client, runtime.recorder(NAME, TOKENS))
    watch(observer, control(runtime, SERIES, "token", reconciler.reconcile, observer.stores))


class Reconciler:
    """Keeps the Secret and the status of a Token in line with its spec; `clock` gives Unix seconds."""

    def __init__(
        self, observer: Observer, client: Client, record: Record, clock: Callable[[], float] = time.time
    ) -> None:
        self._observer = observer
        self._client = client
        self._record = record
        self._clock = clock
        self._children = Children(client, record)

    async def reconcile(self, key: ObjectKey) -> Result:
        """One pass.

        Raises:
            PassFailedError: the Secret could not be written; trying again may help.
            ApiError: Secret or status could not be read or written.
        """
        snapshot = self._observer.snapshot(key)
        if snapshot is None or snapshot.token.metadata.deletion_timestamp is not None:
            return DONE
        now, live = self._clock(), None
        plan = decide(snapshot, now)
        if plan.mint:
            # The cache may be behind, and what else the Secret holds is not ours to lose.
            live = await self._read(snapshot)
            snapshot = msgspec.structs.replace(snapshot, secret=_decoded(live))
            plan = decide(snapshot, now)
        problems, claims = await self._act(snapshot, plan, live, now)
        await self._report(snapshot, claims, problems, now)
        return outcome(problems, DONE if plan.again_s is None else After(plan.again_s))

    async def _read(self, snapshot: Snapshot) -> ManifestView | None:
        name, _ = snapshot.where
        try:
            return await self._client.get(core.SECRET_MANIFESTS, name, snapshot.token.metadata.namespace)
        except NotFound:
            return None

    async def _act(
        self, snapshot: Snapshot, plan: Plan, live: ManifestView | None, now: float
    ) -> tuple[list[Problem], Claims | None]:
        """Do what was planned; gives what went wrong and what the Secret's token says now."""
        token = snapshot.token
        if plan.problem is not None:
            return await steps.run(self._children, token, [plan.problem]), snapshot.claims
        if not plan.mint:
            return [], snapshot.claims
        text = mint(snapshot.signing_key, token.spec.username, token.lifetime_s, now, snapshot.algorithm)
        step = Apply(name=plan.step, wanted=wanted(snapshot, text), live=live)
        problems = await steps.run(self._children, token, [step])
        if problems:
            return problems, snapshot.claims
        log.info("token minted", secret=snapshot.where[0], why=plan.mint)
        return [], verify(snapshot.signing_key, text, snapshot.algorithm)

    async def _report(
        self, snapshot: Snapshot, claims: Claims | None, problems: Sequence[Problem], now: float
    ) -> None:
        token = snapshot.token
        live, told = token.status.conditions, report.conditions(snapshot, claims, problems, now)
        if is_news(live, told[0]):
            record_problems(self._record, token, problems)
        moment, members = datetime.fromtimestamp(now, UTC), report.members(token, claims)
        await write_status(self._client, TOKENS, token, status_change(live, told, moment, members))


def _decoded(secret: ManifestView | None) -> SecretView | None:
    return None if secret is None else msgspec.convert(msgspec.to_builtins(secret), SecretView)
