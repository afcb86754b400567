"""The client against scripted answers: what may be concluded from each, and how often it asks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from coil.slurm.client import SlurmClient
from coil.slurm.errors import (
    BadReply,
    ControllerDown,
    NotFound,
    NotServed,
    Rejected,
    SlurmError,
    SomeRefused,
    Unauthorized,
    Unreachable,
)
from coil.slurm.http1 import Answer, ProtocolError
from coil.slurm.tokens import TokenSource
from coil.slurm.wire import JobsReply, NodesReply, NotModified, RunningConfiguration
from tests.support.slurmrest import OneToken, ScriptedWire, error, reply, table

pytestmark = pytest.mark.asyncio

NODE = {"name": "n1", "state": ["IDLE", "DRAIN"], "reason": "slurm-operator: x", "cpus": 4}
TIME = {"set": True, "infinite": False, "number": 7}


def client_of(wire: ScriptedWire) -> SlurmClient:
    return SlurmClient("http://rest.ns:6820/", OneToken(), wire)


async def nodes_from(status: int, body: bytes) -> NodesReply | NotModified:
    wire = ScriptedWire()
    wire.on("nodes/", status, body)
    return await client_of(wire).nodes()


async def test_only_the_newest_version_tells_what_slurmctld_runs_with() -> None:
    about = {"HashValue": 4031097061, "BOOT_TIME": 1796062618, "SLURM_VERSION": "26.05.5"}
    wire = ScriptedWire()
    wire.on("/conf", 200, reply({"slurm_conf": {}, "slurm_conf_meta": about}))
    assert await client_of(wire).configuration() == RunningConfiguration(4031097061, 1796062618)
    older = ScriptedWire("v0.0.43", "v0.0.44")
    assert await client_of(older).configuration() is None
    assert older.lines == []


async def test_a_whole_list_is_read_with_the_members_we_know() -> None:
    found = await nodes_from(200, table("nodes", NODE, at=99))
    assert isinstance(found, NodesReply)
    assert (found.last_update, found.doubts, found.nodes[0].drained) == (99, (), True)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b"Authentication failure", Unauthorized),
        (403, b"", Unauthorized),
        (511, error("Protocol authentication error", 1007), Unauthorized),
        (502, error("Unable to contact slurm controller (connect failure)", 1800), ControllerDown),
        (504, error("Socket timed out on send/recv operation", 5004), ControllerDown),
        (503, b"<html>no backend</html>", ControllerDown),
        (404, b"Unable to find requested URL endpoint.", NotServed),
        (422, error("Invalid node name specified", 2018), NotFound),
        (500, error("Invalid node state transition", 2180), Rejected),
        (500, b"", BadReply),
        (302, b"", BadReply),
        (299, table("nodes", NODE), BadReply),
    ],
)
async def test_a_status_is_the_error_it_stands_for(status: int, body: bytes, kind: type[SlurmError]) -> None:
    with pytest.raises(SlurmError) as caught:
        await nodes_from(status, body)
    assert type(caught.value) is kind
    assert caught.value.status == status


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"[]",
        b"\xff",
        table("nodes", NODE)[:-20],
        reply({"nodes": [NODE]}),
        reply({"last_update": TIME}),
        reply({"nodes": None, "last_update": TIME}),
        table("nodes", NODE, at=0),
        reply({"nodes": [NODE], "last_update": {"set": False, "number": 7}}),
        table("nodes", NODE, version="v0.0.44"),
        table("nodes", NODE, meta={}),
        error("No error", 0),
        table("nodes", NODE, errors=[{"error": "half of it is missing"}]),
    ],
)
async def test_what_is_no_whole_list_is_no_list(body: bytes) -> None:
    """Invariant I2: 200 alone proves nothing."""
    with pytest.raises(BadReply):
        await nodes_from(200, body)


async def test_one_unreadable_node_is_a_doubt_and_spares_the_others() -> None:
    found = await nodes_from(200, table("nodes", {"name": 5, "state": []}, NODE, {"name": "n2"}))
    assert isinstance(found, NodesReply)
    assert [node.name for node in found.nodes] == ["n1"]
    assert len(found.doubts) == 2


async def test_304_is_not_modified() -> None:
    wire = ScriptedWire()
    wire.on("nodes/", 304)
    assert isinstance(await client_of(wire).nodes(5), NotModified)
    assert wire.lines == ["GET /slurm/v0.0.45/nodes/?update_time=5"]


async def test_an_empty_job_list_without_a_time_is_not_modified() -> None:
    """An unchanged job table comes with 200; as an answer to an unconditional read it is none."""
    wire = ScriptedWire()
    wire.on("jobs/", 200, table("jobs", at=0, warnings=[{"description": "No job changes since ..."}]))
    assert isinstance(await client_of(wire).jobs(5), NotModified)
    with pytest.raises(BadReply):
        await client_of(wire).jobs()


async def test_jobs_are_read() -> None:
    wire = ScriptedWire()
    wire.on("jobs/", 200, table("jobs", {"job_id": 3, "job_state": ["RUNNING"], "nodes": "n[1-2]"}))
    found = await client_of(wire).jobs(5)
    assert isinstance(found, JobsReply)
    assert found.jobs[0].holds_nodes


@pytest.mark.parametrize("status", ["Protocol authentication error", "Unable to contact slurm controller"])
async def test_a_refused_token_is_no_missing_controller(status: str) -> None:
    wire = ScriptedWire()
    wire.on("ping/", 200, reply({"pings": [{"hostname": "c", "responding": False, "status": status}]}))
    if status.startswith("Protocol"):
        with pytest.raises(Unauthorized):
            await client_of(wire).ping()
    else:
        assert [ping.responding for ping in await client_of(wire).ping()] == [False]


async def test_errors_tell_call_status_and_texts_once() -> None:
    wire = ScriptedWire()
    twice = [{"error": "busy"}, {"error": "busy"}, {"description": "only described"}]
    wire.on("DELETE", 422, reply(errors=twice))
    with pytest.raises(Rejected) as caught:
        await client_of(wire).delete_node("n/1 [x]")
    assert str(caught.value) == (
        "Slurm DELETE slurm/v0.0.45/node/n%2F1%20%5Bx%5D: 422 Unprocessable Entity: busy: only described"
    )


async def test_many_first_calls_negotiate_once() -> None:
    wire = ScriptedWire("v0.0.43", "v0.0.44")
    client = client_of(wire)
    await asyncio.gather(*(client.delete_node(f"n{ordinal}") for ordinal in range(10)))
    assert sum("openapi" in target for _, target, _ in wire.requests) == 1
    assert client.data_parser == "v0.0.44"


async def test_a_version_that_is_gone_is_replaced_and_the_call_repeated() -> None:
    wire = ScriptedWire()
    client = client_of(wire)
    await client.reconfigure()
    wire.versions = ("v0.0.42",)
    await client.reconfigure()
    assert client.data_parser == "v0.0.42"
    assert wire.lines[1:] == ["GET /slurm/v0.0.45/reconfigure/", "GET /slurm/v0.0.42/reconfigure/"]


async def test_another_release_is_asked_again_what_it_serves() -> None:
    wire = ScriptedWire("v0.0.44")
    client = client_of(wire)
    await client.reconfigure()
    wire.versions, wire.release = ("v0.0.44", "v0.0.45"), "26.05.6"
    await client.reconfigure()
    await client.delete_node("n1")
    assert client.data_parser == "v0.0.45"


async def test_a_path_that_is_never_served_is_an_error_not_a_loop() -> None:
    wire = ScriptedWire()
    wire.on("ping/", 404, b"Unable to find requested URL endpoint.")
    with pytest.raises(NotServed):
        await client_of(wire).ping()
    assert len(wire.lines) == 2


@pytest.mark.parametrize("answer", [Answer(200, b"<html>"), Answer(304, b""), Answer(200, b'{"paths": []}')])
async def test_an_address_that_is_no_slurmrestd_is_told(answer: Answer) -> None:
    wire = ScriptedWire()
    wire.on("openapi", answer.status, answer.body)
    with pytest.raises(BadReply, match="no API description"):
        await client_of(wire).nodes()


async def test_only_newer_versions_than_we_know_are_told() -> None:
    with pytest.raises(NotServed, match=r"serves v0\.0\.46; coil knows v0\.0\.45"):
        await client_of(ScriptedWire("v0.0.46")).nodes()


@pytest.mark.parametrize("cause", [ConnectionRefusedError("refused"), OSError(), ProtocolError("cut")])
async def test_a_broken_connection_is_unreachable(cause: Exception) -> None:
    def broken(_line: str, _body: Any) -> Answer:
        raise cause

    wire = ScriptedWire()
    wire.call("", broken)
    with pytest.raises(Unreachable):
        await client_of(wire).nodes()


async def test_a_refused_connection_is_told_with_the_address() -> None:
    async def refused(_host: str, _port: int, _request: bytes) -> Answer:
        raise ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 6820)")

    with pytest.raises(Unreachable, match=r"http://rest:6820: connection refused$"):
        await SlurmClient("http://rest:6820", OneToken(), refused).nodes()


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("call", "seconds"),
    [
        (lambda client: client.nodes(), 50),
        (lambda client: client.delete_node("n"), 15),
        (lambda client: client.drain(["a", "b"], "r"), 50),
    ],
)
async def test_every_call_has_a_deadline(
    call: Callable[[SlurmClient], Awaitable[Any]], seconds: float
) -> None:
    """Invariant I6."""

    async def silent(_host: str, _port: int, request: bytes) -> Answer:
        if b"openapi" in request:
            return await ScriptedWire()("", 0, request)
        await asyncio.Event().wait()
        raise AssertionError

    client = SlurmClient("http://rest", OneToken(), silent)
    began = asyncio.get_running_loop().time()
    with pytest.raises(Unreachable, match=f"no answer within {seconds} s"):
        await call(client)
    assert asyncio.get_running_loop().time() - began == pytest.approx(seconds)


async def test_only_given_values_are_sent() -> None:
    wire = ScriptedWire()
    client = client_of(wire)
    await client.drain(["n1"], "why")
    await client.undrain(["n1"])
    await client.update_nodes(["n1"], comment="", topology="", features=[], active_features=[])
    assert [body for _, _, body in wire.requests[1:]] == [
        {"state": ["DRAIN"], "reason": "why"},
        {"state": ["UNDRAIN"], "reason": ""},
        {"comment": "", "topology_str": "", "features": [], "features_act": []},
    ]


async def test_many_nodes_are_one_call_with_a_hostlist() -> None:
    wire = ScriptedWire()
    await client_of(wire).drain((f"n{ordinal}" for ordinal in (3, 1, 2, 2)), "why")
    assert wire.requests[1:] == [
        ("POST", "/slurm/v0.0.45/nodes/", {"name": ["n[1-3]"], "state": ["DRAIN"], "reason": "why"})
    ]


async def test_no_node_is_no_call() -> None:
    wire = ScriptedWire()
    await client_of(wire).drain([], "why")
    assert wire.requests == []


async def test_a_member_that_was_ignored_is_a_refusal() -> None:
    wire = ScriptedWire()
    wire.on("POST", 200, reply(warnings=[{"description": 'Ignoring unknown field "topology_str"'}]))
    with pytest.raises(SomeRefused, match="topology_str"):
        await client_of(wire).update_nodes(["n1"], topology="t")


async def test_the_answer_of_another_cluster_is_no_answer() -> None:
    """Invariant I2: a Service that leads to somebody else's slurmrestd answers with 200, too."""
    wire = ScriptedWire()
    client = SlurmClient("http://rest", OneToken(), wire, cluster="c")
    for part, content in (
        ("nodes/", table("nodes", NODE, cluster="d")),
        ("jobs/", table("jobs", cluster="d")),
    ):
        wire.on(part, 200, content)
    wire.on("ping/", 200, reply({"pings": []}, cluster="d"))
    wire.on("reservations/", 200, reply({"reservations": []}, cluster="d"))
    for call in (client.nodes, client.jobs, client.ping, client.reservations):
        with pytest.raises(BadReply, match="answer of Slurm cluster d, expected c"):
            await call()


@pytest.mark.parametrize("answers", ["c", "C", "", None])
async def test_a_name_in_other_letters_or_none_is_ours(answers: str | None) -> None:
    """Slurm writes the name in lower case; v0.0.42 may tell none."""
    wire = ScriptedWire()
    wire.on("nodes/", 200, table("nodes", NODE, cluster=answers))
    for expected in ("C", ""):
        found = await SlurmClient("http://rest", OneToken(), wire, cluster=expected).nodes()
        assert isinstance(found, NodesReply)
        assert found.doubts == ()


async def test_without_a_name_to_expect_a_change_of_it_is_a_doubt() -> None:
    wire = ScriptedWire()
    client = client_of(wire)
    seen: list[tuple[str, ...]] = []
    for answers in ("c", "d", "", "c"):
        wire.on("nodes/", 200, table("nodes", NODE, cluster=answers))
        wire.on("jobs/", 200, table("jobs", cluster=answers))
        for found in (await client.nodes(), await client.jobs()):
            assert isinstance(found, NodesReply | JobsReply)
            seen.append(found.doubts)
    assert [bool(doubts) for doubts in seen] == [False, False, True, True, False, False, False, False]
    assert seen[2][0].startswith("Slurm cluster d answers, c did before")


async def test_nothing_is_changed_at_an_address_before_it_is_known_who_answers_there() -> None:
    wire = ScriptedWire()
    client = SlurmClient("http://old", OneToken(), wire, cluster="c")
    await client.drain(["n1"], "why")
    await client.undrain(["n1"])
    assert [line.split("/", 3)[3] for line in wire.lines] == ["ping/", "node/n1", "node/n1"]
    wire.cluster = "d"
    assert client.retarget("http://new", "c")
    for write in (client.drain(["n1"], "why"), client.delete_node("n1"), client.delete_reservation("r")):
        with pytest.raises(BadReply, match="cluster d"):
            await write
    assert [line.split("/", 3)[3] for line in wire.lines[3:]] == ["ping/"] * 3


async def test_a_name_to_expect_may_come_later() -> None:
    wire = ScriptedWire()
    client = client_of(wire)
    await client.reconfigure()
    assert client.retarget("http://rest.ns:6820", "d")
    assert not client.retarget("http://rest.ns:6820", "d")
    with pytest.raises(BadReply, match="expected d"):
        await client.reconfigure()
    wire.on("nodes/", 200, table("nodes", NODE, cluster="d"))
    found = await client.nodes()
    assert isinstance(found, NodesReply)
    assert found.doubts == ()


async def test_a_new_address_is_used_at_once_and_negotiated() -> None:
    hosts: list[tuple[str, int]] = []
    wire = ScriptedWire()

    async def noting(host: str, port: int, request: bytes) -> Answer:
        hosts.append((host, port))
        return await wire(host, port, request)

    client = SlurmClient("http://old:6820", OneToken(), noting)
    await client.reconfigure()
    client.retarget("http://old:6820/")
    await client.reconfigure()
    client.retarget("http://new")
    await client.reconfigure()
    assert hosts == [("old", 6820)] * 3 + [("new", 80)] * 2
    assert client.base_url == "http://new"


@pytest.mark.parametrize("address", ["", "rest:6820", "https://rest:6820", "http://", "http://rest/path"])
async def test_an_address_we_cannot_speak_to_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="expected http://HOST:PORT"):
        SlurmClient(address, OneToken())


@pytest.mark.parametrize("method", ["nodes", "reconfigure"])
async def test_a_refused_token_is_followed_by_one_of_the_new_key(method: str) -> None:
    """Field case SEC-07: the request is repeated at once; a refused one had no effect."""
    wire, tokens = ScriptedWire(), TokenSource(b"o" * 32)
    path = {"nodes": "nodes/", "reconfigure": "reconfigure/"}[method]
    body = table("nodes") if method == "nodes" else reply()
    answers = [Answer(511, error("Protocol authentication error", 1007)), Answer(200, body)]
    wire.call(path, lambda _line, _body: answers.pop(0))
    tokens.rotate(b"n" * 32)
    await getattr(SlurmClient("http://rest", tokens, wire), method)()
    assert tokens.keys == [b"n" * 32]


async def test_when_every_key_is_refused_the_request_is() -> None:
    wire, tokens = ScriptedWire(), TokenSource(b"o" * 32)
    wire.on("nodes/", 511, error("Protocol authentication error", 1007))
    tokens.rotate(b"n" * 32)
    with pytest.raises(Unauthorized):
        await SlurmClient("http://rest", tokens, wire).nodes()
    assert tokens.key == b"o" * 32
