"""The life of one NodeSet, measured phase by phase."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from benchmarks.scale import bare
from benchmarks.scale.audit import Audit
from benchmarks.scale.departures import Departures
from benchmarks.scale.measuring import Meter, Phase
from benchmarks.scale.objects import ALIKE, IMAGES, NAMESPACE, NODESET, objects
from benchmarks.scale.traffic import Counted
from benchmarks.scale.usage import Process
from benchmarks.scale.watching import Watched
from benchmarks.scale.world import World, operator, world
from coil.api.keys import PORT_SLURMRESTD
from coil.kube import core
from coil.kube.cache import Caches
from coil.slurm.client import SlurmClient
from coil.slurm.tokens import TokenSource
from coil.support.tasks import Tasks

QUIET_S = 3.0
"""Nothing is written for so long: the operator has finished."""
SETTLED_S = 6.5
"""The same after a start: longer than coil waits on purpose before it writes the comments."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure."""

    count: int
    operator: str = ""
    """Command line of the operator; coil when it is empty."""
    steady_s: float = 60.0
    changes: int = 50
    """State changes in Slurm whose way to the pod is timed."""
    roll: bool = True
    twice: bool = True
    """The bare loop runs again before workers leave, and with pods like them when they have left: a machine
    that others use is not the same for long."""

    @property
    def patience(self) -> float:
        """Seconds after which a phase is given up."""
        return 120 + self.count / 2


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was measured."""

    count: int
    bare: bare.Bare
    alike: bare.Bare | None
    """The bare loop with pods like the workers."""
    phases: list[Phase]
    latencies_s: list[float]

    def phase(self, name: str) -> Phase:
        """A phase by its name."""
        return next(phase for phase in self.phases if phase.name == name)


Say = Callable[[str], None]


async def measure(plan: Plan, say: Say) -> Results:
    """Run all phases in a world made for them."""
    say(f"starting a control plane, {plan.count} machines and as many Slurm nodes")
    async with world(plan.count) as made, _watching(made) as seen:
        loop = BareLoop(plan, made, seen, say)
        limit = await loop.small()
        later, worker = limit, None
        counted = Counted(made.cluster.ports["rest"])
        async with counted.listening(PORT_SLURMRESTD):
            with operator(made, plan.operator) as process:
                meter = Meter(Process(process.pid), counted, Audit(made.server.audit_log))
                run = Run(plan, made, seen.workers, meter, say)
                await run.growth()
                if plan.twice:
                    worker, later = await loop.copy_of_a_worker(), await loop.small()
                await run.decline()
        # As empty as it was when the workers came, and without the operator.
        alike = await loop.alike(worker) if worker is not None else None
    at_its_time = bare.Bare(limit.created_s, limit.running_s, later.half_deleted_s, later.rest_deleted_s)
    return Results(
        count=plan.count, bare=at_its_time, alike=alike, phases=run.phases, latencies_s=run.latencies
    )


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of each sort."""

    workers: Watched = msgspec.field(default_factory=lambda: Watched(NAMESPACE, f"{NODESET}-"))
    small: Watched = msgspec.field(default_factory=lambda: Watched("default", "bare-"))
    alike: Watched = msgspec.field(default_factory=lambda: Watched(ALIKE, "alike-"))


@asynccontextmanager
async def _watching(made: World) -> AsyncIterator[Seen]:
    """Worker pods and bare pods."""
    seen = Seen()
    async with (
        made.client("scale-watcher") as client,
        made.client("scale-kubelets") as ends,
        Tasks() as tasks,
    ):
        caches = Caches(client)
        store = caches.store(core.PODS)
        for watched in (seen.workers, seen.small, seen.alike):
            store.on_event(watched.seen)
        going = Departures(ends)
        store.on_event(going.seen)
        tasks.spawn("departures", going.run())
        tasks.spawn("caches", caches.run())
        await caches.sync()
        yield seen


class BareLoop:
    """What this machine can do at best."""

    def __init__(self, plan: Plan, made: World, seen: Seen, say: Say) -> None:
        self._plan = plan
        self._world = made
        self._seen = seen
        self._say = say

    async def small(self) -> bare.Bare:
        """With small pods."""
        self._say("bare: making and deleting small pods")
        return await self._measure("default", self._seen.small, bare.small(self._plan.count))

    async def alike(self, worker: bare.Manifest) -> bare.Bare:
        """With pods like the workers, in a Service like theirs."""
        self._say("bare: making and deleting pods like the workers")
        return await self._measure(ALIKE, self._seen.alike, bare.alike(worker, self._plan.count))

    async def copy_of_a_worker(self) -> bare.Manifest:
        """A worker's manifest; its headless Service is made anew for the others."""
        return await asyncio.to_thread(self._copy, min(self._seen.workers.pods))

    def _copy(self, worker: str) -> bare.Manifest:
        kubectl = self._world.kubectl
        kubectl("create", "namespace", ALIKE)
        services = json.loads(kubectl("get", "services", "-n", NAMESPACE, "-o", "json"))["items"]
        headless = [bare.anew(one) for one in services if one["spec"]["clusterIP"] == "None"]
        self._world.apply(*headless, namespace=ALIKE)
        return json.loads(kubectl("get", "pod", worker, "-n", NAMESPACE, "-o", "json"))

    async def _measure(self, namespace: str, watched: Watched, pods: list[bare.Manifest]) -> bare.Bare:
        async with self._world.client("scale-bare") as client:
            return await bare.measure(client, namespace, watched, pods, self._plan.patience)


class Run:
    """The phases after the bare loop."""

    def __init__(self, plan: Plan, made: World, pods: Watched, meter: Meter, say: Say) -> None:
        self._plan = plan
        self._world = made
        self._pods = pods
        self._meter = meter
        self._say = say
        self.phases: list[Phase] = []
        self.latencies: list[float] = []

    async def growth(self) -> None:
        """The phases with all workers, one after the other; each begins when nothing is written any more."""
        await self._prepare()
        await self._grow(self._plan.count)
        await self._steady()
        if self._plan.changes:
            await self._change_states()
        if self._plan.roll:
            await self._roll()

    async def decline(self) -> None:
        """The phases in which workers leave."""
        await self._quiet()
        count = self._plan.count
        await self._shrink("half", count - count // 2)
        await self._quiet()
        await self._shrink("none", 0)

    async def _prepare(self) -> None:
        await asyncio.to_thread(self._world.kubectl, "create", "namespace", NAMESPACE)
        await self._apply(*objects(self._world, self._plan.count))
        async with asyncio.timeout(120):
            # The operator has begun: it has read Slurm and told about the NodeSet.
            while not await self._observed():  # noqa: ASYNC110 -- other processes set no event
                await asyncio.sleep(0.5)
        await self._quiet()

    async def _observed(self) -> bool:
        told = ("get", "nodeset", NODESET, "-n", NAMESPACE, "-o", "jsonpath={.status.selector}")
        if not await asyncio.to_thread(self._world.kubectl, *told):
            return False
        return self._meter.has_read_slurm()

    async def _grow(self, count: int) -> None:
        pods = self._pods
        self._begin(f"0 to {count} workers")
        await self._scale(count)
        await pods.until(lambda: len(pods.pods) >= count, self._plan.patience, "all workers are made")
        self._lap("created")
        await pods.until(lambda: len(pods.ready) >= count, self._plan.patience, "all workers run")
        self._lap("running")
        await self._quiet(SETTLED_S)
        self._lap("settled")

    async def _steady(self) -> None:
        self._begin(f"nothing changes for {self._plan.steady_s:g} s")
        await asyncio.sleep(self._plan.steady_s)
        self._lap("steady")

    async def _change_states(self) -> None:
        self._begin(f"{self._plan.changes} state changes in Slurm")
        chosen = random.Random(7)  # noqa: S311 -- the same choice in each run
        names = sorted(self._pods.pods)
        tokens = TokenSource(self._world.cluster.jwt_key)
        client = SlurmClient(self._world.cluster.base_url, tokens)
        for number in range(self._plan.changes):
            name, reason = chosen.choice(names), f"change {number}"
            took = await self._seen(
                client.drain([name], reason), lambda n=name, r=reason: self._pods.shows(n, "Drain", r)
            )
            self.latencies.append(took)
            # Random pauses: a change may fall anywhere between two polls.
            await asyncio.sleep(chosen.random())
            await self._seen(client.undrain([name]), lambda n=name: not self._pods.shows(n, "Drain"))
        self._lap("changes")
        await self._quiet()

    async def _seen(self, change: Awaitable[None], shown: Callable[[], bool]) -> float:
        """Seconds from the change, which Slurm has taken when its call returns, to what the pod shows."""
        begin = time.monotonic()
        await change
        await self._pods.until(shown, 60, "the pod shows the change")
        return time.monotonic() - begin

    async def _roll(self) -> None:
        before = {pod.metadata.uid for pod in self._pods.pods.values()}
        self._begin("a new image for all")
        await self._patch({"spec": {"slurmd": {"image": IMAGES[1]}}})

        def rolled() -> bool:
            pods = self._pods
            new = before.isdisjoint(pod.metadata.uid for pod in pods.pods.values())
            return new and len(pods.ready) == self._plan.count

        await self._pods.until(rolled, 4 * self._plan.patience, "all workers are new and run")
        self._lap("rolled")
        await self._quiet(SETTLED_S)

    async def _shrink(self, name: str, left: int) -> None:
        self._begin(f"down to {left} workers")
        await self._scale(left)
        pods = self._pods
        await pods.until(lambda: len(pods.pods) <= left, self._plan.patience, f"{left} workers are left")
        self._lap(name)

    async def _quiet(self, quiet_s: float = QUIET_S) -> None:
        """Wait until nothing was written for a while."""
        deadline = time.monotonic() + self._plan.patience
        last, since = self._meter.written(), time.monotonic()
        while time.monotonic() - since < quiet_s:
            if time.monotonic() > deadline:
                raise TimeoutError("the operator did not stop writing")
            await asyncio.sleep(0.5)
            now = self._meter.written()
            if now != last:
                last, since = now, time.monotonic()

    def _begin(self, what: str) -> None:
        self._say(what)
        self._meter.begin()

    def _lap(self, name: str) -> None:
        phase = self._meter.lap(name)
        self.phases.append(phase)
        self._say(
            f"  {name}: {phase.seconds:.1f} s, {phase.cpu_s:.2f} CPU-s, {phase.slurm_total} Slurm calls"
        )

    async def _scale(self, replicas: int) -> None:
        await self._patch({"spec": {"replicas": replicas}})

    async def _patch(self, body: dict[str, Any]) -> None:
        text = msgspec.json.encode(body).decode()
        patch = ("patch", "nodeset", NODESET, "-n", NAMESPACE, "--type=merge", "-p", text)
        await asyncio.to_thread(self._world.kubectl, *patch)

    async def _apply(self, *objects: dict[str, Any]) -> None:
        await asyncio.to_thread(lambda: self._world.apply(*objects, namespace=NAMESPACE))
