"""A scripted slurmrestd at the boundary of the wire: answers in the order of a script, no sockets."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from coil.slurm.http1 import Answer

SERVED = ("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")


class OneToken:
    """Always the same token; nothing else to try when it is refused."""

    def __init__(self, token: str = "t") -> None:  # noqa: S107 -- none that opens anything
        self._token = token

    def __call__(self) -> str:
        """The token."""
        return self._token

    def refused(self, token: str) -> str:
        """There is no other."""
        del token
        return ""

    def taken(self, token: str) -> None:
        """As expected."""


def openapi(*versions: str) -> bytes:
    """What `GET /openapi/v3` says of a server with these versions."""
    paths = {f"/slurm/{version}/nodes/": {} for version in versions}
    return json.dumps({"info": {}, "paths": {**paths, "/util/v0.0.99/hostlist": {}}}).encode()


def reply(content: dict[str, Any] | None = None, *, version: str = "v0.0.45", **others: Any) -> bytes:
    """A body as slurmrestd writes it, with the content and no error unless given."""
    cluster = others.pop("cluster", "c")
    meta: dict[str, Any] = {
        "plugin": {"data_parser": f"data_parser/{version}"},
        "slurm": {"release": others.pop("release", "26.05.5"), "cluster": cluster},
    }
    if cluster is None:
        del meta["slurm"]["cluster"]
    return json.dumps({"meta": meta, "errors": [], "warnings": [], **(content or {}), **others}).encode()


def error(text: str, number: int, **others: Any) -> bytes:
    """A body that tells one error."""
    return reply(
        errors=[{"error": text, "error_number": number, "description": "d", "source": "s"}], **others
    )


def table(kind: str, *items: dict[str, Any], at: int = 1000, **others: Any) -> bytes:
    """A whole list of nodes or jobs, read at that second."""
    return reply({kind: list(items), "last_update": {"set": True, "number": at}}, **others)


class ScriptedWire:
    """Answers each request by the first matching rule; keeps what was asked."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions or SERVED
        self.release = "26.05.5"
        self.cluster = "c"
        self.requests: list[tuple[str, str, Any]] = []
        self.rules: list[tuple[str, Callable[[str, Any], Answer]]] = []

    def on(self, part: str, status: int, body: bytes = b"") -> None:
        """Answer requests whose first line contains `part`; a later rule wins over an earlier one."""
        self.rules.insert(0, (part, lambda _line, _body: Answer(status, body)))

    def call(self, part: str, answer: Callable[[str, Any], Answer]) -> None:
        """Answer by a function of the request line and the decoded body."""
        self.rules.insert(0, (part, answer))

    @property
    def lines(self) -> list[str]:
        """Method and target of each request but the negotiation."""
        return [f"{method} {target}" for method, target, _ in self.requests if "openapi" not in target]

    async def __call__(self, host: str, port: int, request: bytes) -> Answer:
        """Play the server."""
        del host, port
        head, _, body = request.partition(b"\r\n\r\n")
        method, target, _ = head.decode().split("\r\n", 1)[0].split(" ")
        decoded = json.loads(body) if body else None
        self.requests.append((method, target, decoded))
        for part, answer in self.rules:
            if part in f"{method} {target}":
                return answer(f"{method} {target}", decoded)
        if target == "/openapi/v3":
            return Answer(200, openapi(*self.versions))
        if target.split("/")[2] not in self.versions:
            return Answer(404, b"Unable to find requested URL endpoint.")
        version = target.split("/")[2]
        return Answer(200, reply(version=version, release=self.release, cluster=self.cluster))
