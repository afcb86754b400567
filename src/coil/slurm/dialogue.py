"""The language both sides speak: negotiation of the data parser, and what counts as a whole answer."""

import asyncio
import http
from typing import TypeVar

import msgspec

from coil.slurm.errors import BadReply, NotServed, Rejected, SlurmError
from coil.slurm.transport import Exchange, Transport, failure
from coil.slurm.wire import Envelope, NotModified, ServedPaths

DATA_PARSERS = ("v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42")
"""Versions coil knows, newest first."""

_NEGOTIATION_DEADLINE_S = 30.0
_PING = Exchange(method="GET", path="ping/", deadline_s=15.0)

E = TypeVar("E", bound=Envelope)


class Dialogue:
    """Asks in the newest API version that both sides know.

    The choice is kept until the server stops serving it or another release answers.
    """

    def __init__(self, transport: Transport, cluster: str = "") -> None:
        self.data_parser = ""
        self.release = ""
        self.cluster = cluster
        """Name of the cluster that has to answer, "" while it is not known; Slurm writes it in lower case."""
        self.met = ""
        """Name of the first cluster that answered."""
        self._recognised = False
        self._transport = transport
        self._negotiating = asyncio.Lock()

    def forget(self) -> None:
        """Negotiate again before the next request; who answers is not known."""
        self.data_parser = ""
        self._recognised = False

    async def ask(self, exchange: Exchange, kind: type[E]) -> E | NotModified:
        """Send a request, its path without the version, and return the whole answer."""
        await self._recognise(exchange)
        parser = await self.negotiated()
        try:
            reply = await self._transport.send(_versioned(exchange, parser))
        except NotServed:
            # The server was replaced by one without this version; a path it does not know had no effect.
            self.forget()
            await self._recognise(exchange)
            parser = await self.negotiated()
            reply = await self._transport.send(_versioned(exchange, parser))
        if isinstance(reply, NotModified):
            return reply
        return self._checked(str(_versioned(exchange, parser)), _decoded(exchange, reply, kind), parser)

    async def _recognise(self, exchange: Exchange) -> None:
        """Learn who answers before anything is changed there."""
        if exchange.method != "GET" and self.cluster and not self._recognised:
            await self.ask(_PING, Envelope)

    async def negotiated(self) -> str:
        """The version in use, chosen now if need be; many callers share one question."""
        async with self._negotiating:
            if not self.data_parser:
                served = await self._served()
                common = [parser for parser in DATA_PARSERS if parser in served]
                if not common:
                    offered = ", ".join(sorted(served)) or "no Slurm API"
                    raise NotServed(
                        "GET openapi/v3", f"serves {offered}; coil knows {', '.join(DATA_PARSERS)}"
                    )
                self.data_parser = common[0]
            return self.data_parser

    async def _served(self) -> set[str]:
        exchange = Exchange(method="GET", path="openapi/v3", deadline_s=_NEGOTIATION_DEADLINE_S)
        reply = await self._transport.send(exchange)
        try:
            document = msgspec.json.decode(b"" if isinstance(reply, NotModified) else reply, type=ServedPaths)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadReply(str(exchange), f"no API description: {error}") from error
        paths = (path.split("/") for path in document.paths)
        return {parts[2] for parts in paths if parts[1:2] == ["slurm"] and parts[3:4] == ["nodes"]}

    def _checked(self, call: str, envelope: E, parser: str) -> E:
        self._check_cluster(call, envelope.meta.slurm.cluster)
        answered = envelope.meta.plugin.data_parser.removeprefix("data_parser/")
        if answered != parser:
            raise BadReply(call, f"answer in API version {answered or '(none)'}, asked in {parser}")
        for warned in envelope.warnings:
            if "unknown field" in warned.description:
                # Slurm did the rest of the request and answered 200 (measured: topology_str in v0.0.42).
                raise Rejected(call, f"{parser} has no such member: {warned.description}")
        self._notice_release(envelope.meta.slurm.release)
        return envelope

    def _check_cluster(self, call: str, name: str) -> None:
        """Believe no other cluster than ours; an answer without a name, as of old versions, says nothing."""
        if name and self.cluster and name.casefold() != self.cluster.casefold():
            raise BadReply(
                call,
                f"answer of Slurm cluster {name}, expected {self.cluster}:"
                " the Service of the RestApi leads to a slurmrestd of another cluster",
            )
        self.met = self.met or name
        self._recognised = True

    def stranger(self, name: str) -> tuple[str, ...]:
        """The doubt about what is read when another cluster answers than at first."""
        if not name or self.cluster or name == self.met:
            return ()
        return (
            (
                f"Slurm cluster {name} answers, {self.met} did before;"
                " if it was renamed, restart the operator, or set clusterName of the Controller"
            ),
        )

    def _notice_release(self, release: str) -> None:
        """Negotiate again when another release answers: it may serve a newer version."""
        if self.release and release != self.release:
            self.forget()
        self.release = release


def _decoded(exchange: Exchange, body: bytes, kind: type[E]) -> E:
    try:
        envelope = msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _told_error(exchange, body) or BadReply(str(exchange), f"unreadable answer: {error}") from error
    if envelope.errors:
        raise failure(str(exchange), http.HTTPStatus.OK, body)
    return envelope


def _told_error(exchange: Exchange, body: bytes) -> SlurmError | None:
    """Errors in an answer that lacks its content, as 200 with errors for an unknown node."""
    try:
        told = msgspec.json.decode(body, type=Envelope).errors
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return failure(str(exchange), http.HTTPStatus.OK, body) if told else None


def _versioned(exchange: Exchange, parser: str) -> Exchange:
    return msgspec.structs.replace(exchange, path=f"slurm/{parser}/{exchange.path}")
