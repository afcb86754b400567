"""Write into Slurm what a plan says, in as few calls as it allows."""

from collections.abc import Sequence

from coil.kinds.nodeset.actions import (
    Action,
    Drain,
    Prune,
    Resume,
    SetComment,
    SetFeatures,
    SetTopology,
    Undrain,
)
from coil.kinds.nodeset.freshness import Freshness
from coil.kinds.status import Problem
from coil.kube.batches import slow_start
from coil.slurm.client import SlurmClient
from coil.slurm.errors import BadReply, NotFound, Rejected, SlurmError, SomeRefused
from coil.slurm.wire import NotModified
from coil.support.hostlist import HostlistError, expand
from coil.support.log import get_logger

STATES = "SlurmNodes"
RECORDS = "SlurmNodeRecords"
TOPOLOGY = "SlurmTopology"
FEATURES = "SlurmFeatures"
POD_INFO = "SlurmPodInfo"

log = get_logger("nodeset-controller")


class SlurmWrites:
    """The writes of one pass into one Slurm cluster."""

    def __init__(self, client: SlurmClient) -> None:
        self._client = client

    async def change_states(self, actions: Sequence[Action], freshness: Freshness) -> list[Problem]:
        """Drain, undrain and resume; after a call that got no answer the rest waits for the next pass."""
        problems: list[Problem] = []
        for action in actions:
            if not isinstance(action, Drain | Undrain | Resume):
                continue
            if not freshness.holds():
                break
            error = await self._try(action)
            if error is not None:
                problems.append(_problem(STATES, error))
                if not isinstance(error, SomeRefused):
                    break
        return problems

    async def prune(self, actions: Sequence[Action], freshness: Freshness) -> tuple[list[str], list[Problem]]:
        """Remove records of workers that are gone; gives the names of those removed."""
        names = [name for action in actions if isinstance(action, Prune) for name in action.nodes]
        if not names or not freshness.holds():
            return [], []
        removed: list[str] = []
        problems: list[Problem] = []
        try:
            remembered = await self._nodes_of_jobs()
            for name in names:
                if name not in remembered:
                    refusal = await self._remove(name)
                    if refusal is None:
                        removed.append(name)
                    else:
                        problems.append(_problem(RECORDS, refusal))
        except SlurmError as error:
            problems.append(_problem(RECORDS, error))
        return removed, problems[:1]

    async def _remove(self, name: str) -> Rejected | None:
        """Remove one record; why slurmctld keeps it, which says nothing about the others."""
        try:
            await self._client.delete_node(name)
        except NotFound:
            log.debug("Slurm record is gone already", node=name)
        except Rejected as error:
            return error
        return None

    async def _nodes_of_jobs(self) -> set[str]:
        """Nodes of all jobs that slurmctld still keeps, ended ones included."""
        reply = await self._client.jobs()
        if isinstance(reply, NotModified) or reply.doubts:
            raise BadReply("GET jobs/", "not all jobs could be read")
        try:
            return {name for job in reply.jobs for name in expand(job.nodes)}
        except HostlistError as error:
            raise BadReply("GET jobs/", str(error)) from error

    async def describe(self, actions: Sequence[Action]) -> list[Problem]:
        """Write comments, topology and features; a refused one does not hold up the others."""
        problems: list[Problem] = []
        for step, kind in ((POD_INFO, SetComment), (TOPOLOGY, SetTopology), (FEATURES, SetFeatures)):
            problems += await self._describe(step, [a for a in actions if isinstance(a, kind)])
        return problems

    async def _describe(self, step: str, actions: Sequence[Action]) -> list[Problem]:
        refused: list[Rejected] = []

        async def write(index: int) -> None:
            try:
                await self._send(actions[index])
            except Rejected as refusal:
                refused.append(refusal)

        batch = await slow_start(len(actions), write)
        error = batch.error or next(iter(refused), None)
        if error is not None and not isinstance(error, SlurmError):
            raise error
        return [] if error is None else [_problem(step, error)]

    async def _try(self, action: Drain | Undrain | Resume) -> SlurmError | None:
        try:
            await self._send(action)
        except SlurmError as error:
            return error
        log.info(
            type(action).__name__.lower(), nodes=len(action.nodes), first=action.nodes[0], why=_why(action)
        )
        return None

    async def _send(self, action: Action) -> None:
        client = self._client
        match action:
            case Drain(nodes=nodes, reason=reason):
                await client.update_nodes(nodes, state="DRAIN", reason=reason)
            case Undrain(nodes=nodes):
                await client.update_nodes(nodes, state="UNDRAIN", reason="")
            case Resume(nodes=nodes):
                await client.update_nodes(nodes, state="IDLE")
            case SetComment(node=node, comment=comment):
                await client.update_nodes([node], comment=comment)
            case SetTopology(nodes=nodes, topology=topology):
                await client.update_nodes(nodes, topology=topology)
            case SetFeatures(nodes=nodes, features=features, active=active):
                await client.update_nodes(nodes, features=features, active_features=active)
            case _:
                raise TypeError(f"{type(action).__name__} is no write into Slurm")


def _problem(step: str, error: SlurmError) -> Problem:
    return Problem(step, type(error).__name__, str(error), retry=True)


def _why(action: Drain | Undrain | Resume) -> str:
    match action:
        case Drain(reason=reason):
            return reason
        case Resume(why=why):
            return why
        case Undrain():
            return "nothing wants it drained any more"
