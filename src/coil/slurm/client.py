"""REST client of one Slurm cluster.

Speaks the newest data parser that both sides know, gives every call a deadline, and turns whatever is no
whole answer into an error (invariant I2). Calls and fields: spec: nodeset 7.2, control-plane 10.
"""

from collections.abc import Iterable, Sequence
from urllib.parse import quote

import msgspec

from coil.slurm import http1
from coil.slurm.dialogue import Dialogue, E
from coil.slurm.errors import BadReply, Unauthorized
from coil.slurm.tokens import Tokens
from coil.slurm.transport import Exchange, Transport, Wire
from coil.slurm.updates import update_each
from coil.slurm.wire import (
    ConfigurationEnvelope,
    ControllerPing,
    Envelope,
    JobsEnvelope,
    JobsReply,
    NodesEnvelope,
    NodesReply,
    NodeUpdate,
    NotModified,
    Number,
    PingEnvelope,
    Reservation,
    ReservationsEnvelope,
    ReservationUpdate,
    RunningConfiguration,
    SlurmJob,
    SlurmNode,
    decode_items,
)
from coil.support.hostlist import compress

ITEM_DEADLINE_S = 15.0
"""Longest wait for a call about one object; slurmrestd itself gives up on slurmctld after 10 s."""
LIST_DEADLINE_S = 50.0
"""Longest wait for a list or a bulk update. 10,000 nodes take slurmrestd 2 s, on a busy machine 15 s; after
an outage the next try must come within 60 s (invariant I6)."""

_WITH_CONFIGURATION = frozenset({"v0.0.45"})
"""Versions that serve `GET conf`."""
_AUTHENTICATION_ERROR = "Protocol authentication error"
_NODE = msgspec.json.Decoder(SlurmNode)
_JOB = msgspec.json.Decoder(SlurmJob)


class SlurmClient:
    """Calls one slurmrestd. `tokens` gives the token for each request.

    Answers of a cluster with another name than `cluster` are errors (`BadReply`); "" takes any, and doubts
    the lists of another than the first.

    All methods raise a `SlurmError` kind; see `coil.slurm.errors` for what each means.
    """

    def __init__(
        self,
        base_url: str,
        tokens: Tokens,
        wire: Wire = http1.exchange,
        cluster: str = "",
    ) -> None:
        self._transport = Transport(base_url, tokens, wire)
        self._dialogue = Dialogue(self._transport, cluster)

    @property
    def base_url(self) -> str:
        """Where slurmrestd is."""
        return self._transport.base_url

    @property
    def cluster(self) -> str:
        """Name of the Slurm cluster that has to answer, "" when any may."""
        return self._dialogue.cluster

    @property
    def data_parser(self) -> str:
        """The negotiated API version, or "" before the first answer."""
        return self._dialogue.data_parser

    @property
    def release(self) -> str:
        """Slurm release of slurmrestd, or "" before the first answer."""
        return self._dialogue.release

    def retarget(self, base_url: str, cluster: str = "") -> bool:
        """Send the next calls to another address, or expect another name; False when nothing is new."""
        renamed = cluster != self._dialogue.cluster
        if not self._transport.retarget(base_url) and not renamed:
            return False
        self._dialogue.cluster = cluster
        self._dialogue.forget()
        return True

    async def ping(self) -> list[ControllerPing]:
        """Ask which slurmctld answers and leads, in the order of the SlurmctldHost lines.

        slurmrestd reports a refused token as controllers that do not respond; here it is `Unauthorized`.
        """
        pings = (await self._call("GET", "ping/", PingEnvelope)).pings
        if any(ping.status == _AUTHENTICATION_ERROR for ping in pings):
            raise Unauthorized("GET ping/", _AUTHENTICATION_ERROR)
        return pings

    async def nodes(self, update_time: int | None = None) -> NodesReply | NotModified:
        """Read the node table, or learn that nothing changed.

        `update_time` is the `last_update` of an earlier reply. Slurm says "not modified" when the last
        change lies before that second, so a change in the very second of a reply is never missed.
        """
        envelope = await self._list("nodes/", NodesEnvelope, update_time)
        if isinstance(envelope, NotModified):
            return envelope
        nodes, doubts = await decode_items(envelope.nodes, _NODE)
        return NodesReply(
            nodes=nodes,
            last_update=_read_at("nodes/", envelope.last_update),
            doubts=(*doubts, *self._dialogue.stranger(envelope.meta.slurm.cluster)),
        )

    async def jobs(self, update_time: int | None = None) -> JobsReply | NotModified:
        """Read the job table, or learn that nothing changed; `update_time` as in `nodes`."""
        envelope = await self._list("jobs/", JobsEnvelope, update_time)
        if isinstance(envelope, NotModified):
            return envelope
        if update_time is not None and not envelope.last_update.number:
            # Unlike for nodes, unchanged jobs come as 200 with an empty list and no time (measured):
            # taking that list for the truth would make every busy node look free.
            return NotModified()
        jobs, doubts = await decode_items(envelope.jobs, _JOB)
        return JobsReply(
            jobs=jobs,
            last_update=_read_at("jobs/", envelope.last_update),
            doubts=(*doubts, *self._dialogue.stranger(envelope.meta.slurm.cluster)),
        )

    async def reservations(self) -> list[Reservation]:
        """Read all reservations."""
        envelope = await self._call("GET", "reservations/", ReservationsEnvelope, deadline_s=LIST_DEADLINE_S)
        return envelope.reservations

    async def put_reservation(self, reservation: ReservationUpdate) -> None:
        """Create the reservation, or change the one of that name."""
        await self._call("POST", "reservation", Envelope, body=reservation)

    async def delete_reservation(self, name: str) -> None:
        """Remove a reservation."""
        await self._call("DELETE", f"reservation/{_quoted(name)}", Envelope)

    async def update_nodes(  # noqa: PLR0913 -- the members of Slurm's update message
        self,
        names: Iterable[str],
        *,
        state: str | None = None,
        reason: str | None = None,
        comment: str | None = None,
        topology: str | None = None,
        features: Sequence[str] | None = None,
        active_features: Sequence[str] | None = None,
    ) -> None:
        """Give all named nodes the same values in as few calls as possible; None keeps a value.

        Slurm's rules: an empty `reason` leaves the reason as it is; `active_features` must be a subset of
        `features` (spec: nodeset 7.3).

        Raises:
            SomeRefused: some nodes were refused, each with its own error; all others are updated.
            SlurmError: the call failed; any part of the nodes may be updated.
        """
        update = NodeUpdate(
            state=None if state is None else [state],
            reason=reason,
            comment=comment,
            topology_str=topology,
            features=None if features is None else list(features),
            features_act=None if active_features is None else list(active_features),
        )
        await update_each(sorted(set(names)), lambda part: self._update(part, update))

    async def drain(self, names: Iterable[str], reason: str) -> None:
        """Let no new work start on the nodes.

        With an empty reason a node keeps the one it has; any other text replaces it, so the caller must
        have seen that the reason is ours or empty (invariant I3).
        """
        await self.update_nodes(names, state="DRAIN", reason=reason)

    async def undrain(self, names: Iterable[str], reason: str = "") -> None:
        """Let work start on the nodes again; Slurm erases the reason unless the node is down or failed."""
        await self.update_nodes(names, state="UNDRAIN", reason=reason)

    async def delete_node(self, name: str) -> None:
        """Remove a node record; only dynamic nodes without work and reservation can be."""
        await self._call("DELETE", f"node/{_quoted(name)}", Envelope)

    async def reconfigure(self) -> None:
        """Make slurmctld read its configuration again and pass it on to the slurmds.

        It answers before it has read anything: `configuration` tells how that went.
        """
        await self._call("GET", "reconfigure/", Envelope, deadline_s=LIST_DEADLINE_S)

    async def configuration(self) -> RunningConfiguration | None:
        """Which slurm.conf slurmctld runs with; None when the API version does not tell."""
        if await self._dialogue.negotiated() not in _WITH_CONFIGURATION:
            return None
        return (await self._call("GET", "conf", ConfigurationEnvelope)).about

    async def _update(self, names: Sequence[str], update: NodeUpdate) -> None:
        if len(names) == 1:
            await self._call("POST", f"node/{_quoted(names[0])}", Envelope, body=update)
        else:
            body = msgspec.structs.replace(update, name=[compress(names)])
            await self._call("POST", "nodes/", Envelope, body=body, deadline_s=LIST_DEADLINE_S)

    async def _list(self, path: str, kind: type[E], update_time: int | None) -> E | NotModified:
        query = "" if update_time is None else f"update_time={update_time}"
        return await self._dialogue.ask(
            Exchange(method="GET", path=path, query=query, deadline_s=LIST_DEADLINE_S), kind
        )

    async def _call(
        self,
        method: str,
        path: str,
        kind: type[E],
        *,
        body: msgspec.Struct | None = None,
        deadline_s: float = ITEM_DEADLINE_S,
    ) -> E:
        exchange = Exchange(method=method, path=path, body=body, deadline_s=deadline_s)
        reply = await self._dialogue.ask(exchange, kind)
        if isinstance(reply, NotModified):
            raise BadReply(str(exchange), "304 to a request without update_time")
        return reply


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _read_at(path: str, last_update: Number) -> int:
    if not last_update.set or last_update.number <= 0:
        raise BadReply(f"GET {path}", "the list says no time; it may not be whole")
    return last_update.number
