"""Answers of slurmrestd, reduced to the members coil reads.

The same types read the data parsers v0.0.42 to v0.0.45: members that only some of them have are not used,
unknown ones are skipped while decoding.
"""

from typing import TypeVar

import msgspec

from coil.slurm.errors import ErrorDetail
from coil.slurm.pacing import batches
from coil.support.reasons import REASON_PREFIX

FOREVER_S = 9_223_372_036
"""How far ahead a job without a time limit ends: about 292 years (spec: nodeset 12)."""

BASE_STATES = ("ALLOCATED", "DOWN", "ERROR", "FUTURE", "IDLE", "MIXED", "UNKNOWN")
"""The states of which a node has one; all others are flags (spec: nodeset 24.2)."""

_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_WITHOUT_NODES = frozenset(
    {
        *("PENDING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"),
        *("BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED"),
    }
)

T = TypeVar("T")


class Number(msgspec.Struct, frozen=True, gc=False):
    """A number that may be unset or infinite, as the data parsers write it."""

    set: bool = False
    infinite: bool = False
    number: int = 0


UNSET = Number()


class SlurmNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node record of slurmctld."""

    name: str
    state: frozenset[str]
    reason: str = ""
    reason_user: str = msgspec.field(name="reason_set_by_user", default="")
    reason_changed_at: Number = UNSET
    comment: str = ""
    topology: str = ""
    features: tuple[str, ...] = ()
    active_features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    reservation: str = ""
    hostname: str = ""
    address: str = ""
    version: str = ""
    last_busy: Number = UNSET
    """When the last job left the node; unchanged while one runs."""
    started_at: Number = msgspec.field(name="slurmd_start_time", default=UNSET)
    """Start of slurmd by its own clock; a reconfigure starts the program anew."""

    @property
    def base_state(self) -> str:
        """The one state that is no flag, or "" for a state this version of coil does not know."""
        return next((state for state in BASE_STATES if state in self.state), "")

    @property
    def busy(self) -> bool:
        """Work runs on the node or is being cleaned up."""
        return not self.state.isdisjoint(_BUSY)

    @property
    def drain(self) -> bool:
        """No new work is placed on the node."""
        return "DRAIN" in self.state and "UNDRAIN" not in self.state

    @property
    def drained(self) -> bool:
        """No new work is placed on the node and none is left on it."""
        return self.drain and not self.busy

    @property
    def draining(self) -> bool:
        """No new work is placed on the node, but some is left on it."""
        return self.drain and self.busy

    @property
    def ours(self) -> bool:
        """The reason is empty or the operator's own, so the operator may change it (invariant I3)."""
        return not self.reason or self.reason.startswith(REASON_PREFIX)


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job of slurmctld."""

    job_id: int
    state: frozenset[str] = msgspec.field(name="job_state")
    nodes: str = ""
    start_time: Number = UNSET
    time_limit: Number = UNSET
    partition: str = ""
    """One, or for a pending job several between commas."""
    state_reason: str = ""
    node_count: Number = UNSET
    """The fewest that a pending job takes."""
    array_tasks: str = msgspec.field(name="array_task_string", default="")
    """The tasks that a record of pending ones stands for, as in `1-7,9%2`."""
    array_limit: Number = msgspec.field(name="array_max_tasks", default=UNSET)
    """How many of an array's tasks may run at once; 0 is no limit."""

    @property
    def running(self) -> bool:
        """The job counts for the deadline of its nodes."""
        return "RUNNING" in self.state

    @property
    def holds_nodes(self) -> bool:
        """Processes of the job may be on its nodes, suspended ones included.

        A state this version of coil does not know counts as holding (invariant I2).
        """
        return bool(self.nodes) and ("COMPLETING" in self.state or self.state.isdisjoint(_WITHOUT_NODES))

    @property
    def deadline(self) -> int:
        """When the job ends at the latest, in Unix seconds (spec: nodeset 12)."""
        if self.time_limit.infinite:
            return self.start_time.number + FOREVER_S
        return self.start_time.number + (self.time_limit.number * 60 if self.time_limit.set else 0)


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation of slurmctld."""

    name: str
    flags: tuple[str, ...] = ()
    node_list: str = ""
    users: str = ""
    start_time: Number = UNSET
    end_time: Number = UNSET


class ControllerPing(msgspec.Struct, frozen=True, gc=False):
    """Whether one slurmctld answers and leads; in the order of the SlurmctldHost lines."""

    hostname: str = ""
    responding: bool = False
    primary: bool = False
    status: str = ""


class NotModified(msgspec.Struct, frozen=True):
    """Nothing changed since the given time."""


class NodesReply(msgspec.Struct, frozen=True, kw_only=True):
    """The node table. `doubts` is not empty when some of it could not be read."""

    nodes: tuple[SlurmNode, ...]
    last_update: int
    doubts: tuple[str, ...] = ()


class JobsReply(msgspec.Struct, frozen=True, kw_only=True):
    """The job table. `doubts` is not empty when some of it could not be read."""

    jobs: tuple[SlurmJob, ...]
    last_update: int
    doubts: tuple[str, ...] = ()


class PluginMeta(msgspec.Struct, frozen=True):
    """Which parser wrote the answer."""

    data_parser: str = ""


class SlurmMeta(msgspec.Struct, frozen=True):
    """Which slurmrestd wrote the answer."""

    release: str = ""
    cluster: str = ""


class Meta(msgspec.Struct, frozen=True):
    """Where an answer comes from."""

    plugin: PluginMeta = PluginMeta()
    slurm: SlurmMeta = SlurmMeta()


class Warned(msgspec.Struct, frozen=True):
    """One entry of the `warnings` list of an answer."""

    description: str = ""


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What every answer has beside its content."""

    meta: Meta = Meta()
    errors: tuple[ErrorDetail, ...] = ()
    warnings: tuple[Warned, ...] = ()


class NodesEnvelope(Envelope, frozen=True, kw_only=True):
    """Answer of `GET nodes/`; both members are required, so half an answer does not decode."""

    nodes: list[msgspec.Raw]
    last_update: Number


class JobsEnvelope(Envelope, frozen=True, kw_only=True):
    """Answer of `GET jobs/`."""

    jobs: list[msgspec.Raw]
    last_update: Number


class ReservationsEnvelope(Envelope, frozen=True, kw_only=True):
    """Answer of `GET reservations/`."""

    reservations: list[Reservation]


class PingEnvelope(Envelope, frozen=True, kw_only=True):
    """Answer of `GET ping/`."""

    pings: list[ControllerPing]


class RunningConfiguration(msgspec.Struct, frozen=True, gc=False):
    """What slurmctld says about the slurm.conf it runs with.

    Attributes:
        hash: of the text; see `coil.support.confhash`.
        since: when slurmctld began to run with it, by slurmctld's clock, Unix seconds: its start or, since a
            reconfigure starts the program anew, the last reconfigure.
    """

    hash: int = msgspec.field(name="HashValue")
    since: int = msgspec.field(name="BOOT_TIME")


class ConfigurationEnvelope(Envelope, frozen=True, kw_only=True):
    """Answer of `GET conf`; the parameters themselves are not read."""

    about: RunningConfiguration = msgspec.field(name="slurm_conf_meta")


class ServedPaths(msgspec.Struct, frozen=True):
    """What `GET /openapi/v3` says about the API; `paths` names every endpoint with its version."""

    paths: dict[str, msgspec.Raw]


class NodeUpdate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Body of a node update; members left at None are not sent and keep their value."""

    name: list[str] | None = None
    state: list[str] | None = None
    reason: str | None = None
    comment: str | None = None
    topology_str: str | None = None
    features: list[str] | None = None
    features_act: list[str] | None = None


class ReservationUpdate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Body that creates the reservation of that name, or changes it.

    Times are Unix seconds, the duration is in minutes.
    """

    name: str
    start_time: Number | None = None
    end_time: Number | None = None
    duration: Number | None = None
    flags: list[str] | None = None
    users: list[str] | None = None
    node_list: list[str] | None = None


def number(value: int) -> Number:
    """A set number, as the data parsers take it."""
    return Number(set=True, number=value)


async def decode_items(
    items: list[msgspec.Raw], decoder: msgspec.json.Decoder[T]
) -> tuple[tuple[T, ...], tuple[str, ...]]:
    """Decode each item; one that cannot be read affects only itself and is told (invariant I7)."""
    decoded: list[T] = []
    doubts: list[str] = []
    async for batch in batches(items):
        for item in batch:
            try:
                decoded.append(decoder.decode(item))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                doubts.append(f"unreadable record: {error}: {bytes(item)[:80]!r}")
    return tuple(decoded), tuple(doubts)
