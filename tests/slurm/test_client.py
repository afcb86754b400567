"""What the client relies on, asked from real daemons; the facts are listed in docs/slurm.md."""

import time

import pytest

from coil.slurm import http1
from coil.slurm.client import SlurmClient
from coil.slurm.dialogue import DATA_PARSERS
from coil.slurm.errors import BadReply, NotFound, NotServed, Rejected, SomeRefused, Unauthorized
from coil.slurm.tokens import Tokens, TokenSource, mint
from coil.slurm.wire import NodesReply, NotModified, ReservationUpdate, SlurmNode, number
from coil.support.hostlist import compress, expand
from tests.support.slurm import SlurmCluster
from tests.support.slurmrest import OneToken

pytestmark = [pytest.mark.slurm, pytest.mark.asyncio]

OURS = "slurm-operator: test"
FIVE_HUNDRED = [f"sim-{ordinal:04d}" for ordinal in range(500)]


class CountingWire:
    """The real wire, with a count of what went over it."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    async def __call__(self, host: str, port: int, request: bytes) -> http1.Answer:
        self.requests.append(request.split(b" HTTP/", 1)[0].decode())
        return await http1.exchange(host, port, request)


def client_of(cluster: SlurmCluster, tokens: Tokens | None = None) -> SlurmClient:
    return SlurmClient(cluster.base_url, tokens or TokenSource(cluster.jwt_key))


async def nodes_of(client: SlurmClient) -> dict[str, SlurmNode]:
    reply = await client.nodes()
    assert isinstance(reply, NodesReply)
    assert not reply.doubts
    return {node.name: node for node in reply.nodes}


async def test_the_newest_common_version_is_used(cluster: SlurmCluster) -> None:
    client = client_of(cluster)
    assert [ping.responding for ping in await client.ping()] == [True]
    assert client.data_parser == "v0.0.45"
    assert client.release.startswith("26.05")


async def test_only_the_cluster_of_that_name_is_believed(cluster: SlurmCluster) -> None:
    """What slurmrestd calls its cluster is told in every version we know."""
    client = SlurmClient(cluster.base_url, TokenSource(cluster.jwt_key), cluster="Contract")
    other = SlurmClient(cluster.base_url, TokenSource(cluster.jwt_key), cluster="larch")
    assert await nodes_of(client) == {}
    for call in (other.nodes(), other.jobs(), other.ping(), other.drain(["n1"], OURS)):
        with pytest.raises(BadReply, match="answer of Slurm cluster contract, expected larch"):
            await call
    assert cluster.rest
    cluster.rest.stop()
    cluster.start_rest("-d", "v0.0.42")
    assert await nodes_of(client) == {}
    with pytest.raises(BadReply, match="cluster contract"):
        await other.nodes()


async def test_another_version_is_chosen_when_the_server_is_replaced(cluster: SlurmCluster) -> None:
    client = client_of(cluster)
    await client.ping()
    assert cluster.rest
    cluster.rest.stop()
    cluster.start_rest("-d", "v0.0.43,v0.0.42")
    await client.ping()
    assert client.data_parser == "v0.0.43"


async def test_a_server_without_a_known_version_says_what_it_serves(cluster: SlurmCluster) -> None:
    assert cluster.rest
    cluster.rest.stop()
    cluster.start_rest("-s", "openapi/util")
    with pytest.raises(NotServed, match="serves no Slurm API"):
        await client_of(cluster).ping()


@pytest.mark.parametrize("version", DATA_PARSERS)
async def test_every_version_reads_the_same(cluster: SlurmCluster, version: str) -> None:
    assert cluster.rest
    cluster.rest.stop()
    cluster.start_rest("-d", version)
    cluster.create_nodes("sim-[1-3]")
    client = client_of(cluster)
    await client.update_nodes(
        ["sim-1"], features=["a", "k8s/b"], active_features=["a"], comment='{"pod":"x"}'
    )
    await client.drain(["sim-1", "sim-2"], OURS)
    nodes = await nodes_of(client)
    assert client.data_parser == version
    assert [node.drained for node in nodes.values()] == [True, True, False]
    assert (nodes["sim-1"].comment, nodes["sim-1"].reason) == ('{"pod":"x"}', OURS)
    assert (nodes["sim-1"].features, nodes["sim-1"].active_features) == (("a", "k8s/b"), ("a",))
    await client.undrain(["sim-1", "sim-2"])
    assert [node.reason for node in (await nodes_of(client)).values()] == ["", "", ""]


@pytest.mark.parametrize("version", DATA_PARSERS)
async def test_unchanged_tables_are_not_sent_again(cluster: SlurmCluster, version: str) -> None:
    """Nodes answer 304; jobs answer 200 with an empty list, which must not be taken for the truth."""
    assert cluster.rest
    cluster.rest.stop()
    cluster.start_rest("-d", version)
    cluster.create_nodes("sim-[1-3]")
    client = client_of(cluster)
    later = int(time.time()) + 5
    assert isinstance(await client.nodes(later), NotModified)
    assert isinstance(await client.jobs(later), NotModified)


async def test_a_change_in_the_second_of_a_read_is_not_missed(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-[1-3]")
    client = client_of(cluster)
    for turn in range(20):
        reply = await client.nodes()
        assert isinstance(reply, NodesReply)
        await client.update_nodes(["sim-1"], comment=str(turn))
        conditional = await client.nodes(reply.last_update)
        assert isinstance(conditional, NodesReply)
        assert {node.comment for node in conditional.nodes if node.name == "sim-1"} == {str(turn)}


async def test_500_nodes_are_drained_and_undrained_by_one_call_each(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-[0000-0999]")
    wire = CountingWire()
    client = SlurmClient(cluster.base_url, TokenSource(cluster.jwt_key), wire)
    await client.ping()
    wire.requests.clear()
    await client.drain(FIVE_HUNDRED, OURS)
    assert wire.requests == ["POST /slurm/v0.0.45/nodes/"]
    drained = {name for name, node in (await nodes_of(client)).items() if node.drained}
    assert drained == set(FIVE_HUNDRED)
    wire.requests.clear()
    await client.undrain(FIVE_HUNDRED)
    assert wire.requests == ["POST /slurm/v0.0.45/nodes/"]
    assert not any(node.drain or node.reason for node in (await nodes_of(client)).values())


async def test_one_unknown_node_among_500_does_not_stop_the_others(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-[0000-0499]")
    wire = CountingWire()
    client = SlurmClient(cluster.base_url, TokenSource(cluster.jwt_key), wire)
    with pytest.raises(SomeRefused) as caught:
        await client.drain([*FIVE_HUNDRED, "nosuch"], OURS)
    assert caught.value.failed.keys() == {"nosuch"}
    assert isinstance(caught.value.failed["nosuch"], NotFound)
    assert all(node.drained for node in (await nodes_of(client)).values())
    assert len(wire.requests) <= 22


async def test_a_drain_without_a_reason_keeps_that_of_somebody_else(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-[1-2]")
    cluster.run("scontrol", "update", "nodename=sim-1", "state=drain", "reason=bad fan")
    client = client_of(cluster)
    await client.drain(["sim-1", "sim-2"], "")
    nodes = await nodes_of(client)
    assert (nodes["sim-1"].reason, nodes["sim-1"].ours) == ("bad fan", False)
    assert (nodes["sim-2"].drained, nodes["sim-2"].ours) == (True, True)


async def test_undrain_leaves_a_down_node_down_and_idle_brings_it_back(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-1")
    client = client_of(cluster)
    await client.update_nodes(["sim-1"], state="DOWN", reason=OURS)
    await client.undrain(["sim-1"])
    assert (await nodes_of(client))["sim-1"].base_state == "DOWN"
    await client.update_nodes(["sim-1"], state="IDLE")
    node = (await nodes_of(client))["sim-1"]
    assert (node.base_state, node.reason) == ("IDLE", "")


async def test_an_unknown_node_is_422_with_a_text(cluster: SlurmCluster) -> None:
    with pytest.raises(NotFound, match="422 Unprocessable Entity: Invalid node name specified") as caught:
        await client_of(cluster).delete_node("nosuch")
    assert (caught.value.status, caught.value.details[0].error_number) == (422, 2018)


async def test_a_node_record_is_deleted(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-[1-2]")
    client = client_of(cluster)
    await client.delete_node("sim-1")
    assert (await nodes_of(client)).keys() == {"sim-2"}


async def test_a_refusal_says_why(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-1")
    with pytest.raises(Rejected, match="Active features not subset of available features"):
        await client_of(cluster).update_nodes(["sim-1"], features=["a"], active_features=["b"])


async def test_a_member_the_version_lacks_is_told(cluster: SlurmCluster) -> None:
    """v0.0.42 answers 200 and ignores the topology."""
    assert cluster.rest
    cluster.rest.stop()
    cluster.start_rest("-d", "v0.0.42")
    cluster.create_nodes("sim-1")
    with pytest.raises(Rejected, match="topology_str"):
        await client_of(cluster).update_nodes(["sim-1"], topology="default:x")


@pytest.mark.parametrize(
    ("key", "age"), [(b"another key of 32 bytes and more", 0), (None, 1000)], ids=["wrong key", "expired"]
)
async def test_a_bad_token_is_unauthorized(cluster: SlurmCluster, key: bytes | None, age: int) -> None:
    token = mint(key or cluster.jwt_key, "slurm", 900, time.time() - age)
    client = client_of(cluster, OneToken(token))
    with pytest.raises(Unauthorized) as caught:
        await client.nodes()
    assert caught.value.status == 511
    with pytest.raises(Unauthorized):
        await client.ping()


async def test_no_token_is_unauthorized(cluster: SlurmCluster) -> None:
    with pytest.raises(Unauthorized) as caught:
        await client_of(cluster, OneToken("")).nodes()
    assert caught.value.status in {401, 511}


async def test_a_user_without_rights_is_unauthorized(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-1")
    with pytest.raises(Unauthorized, match="Invalid user id"):
        await client_of(cluster, TokenSource(cluster.jwt_key, "nobody")).drain(["sim-1"], OURS)


async def test_a_rotated_key_takes_effect_at_once(cluster: SlurmCluster) -> None:
    """Field case SEC-07."""
    tokens = TokenSource(b"another key of 32 bytes and more")
    client = client_of(cluster, tokens)
    with pytest.raises(Unauthorized):
        await client.nodes()
    tokens.rotate(cluster.jwt_key)
    assert await nodes_of(client) == {}


async def test_a_reservation_lives_by_its_name(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-[01-04]")
    client = client_of(cluster)
    start = int(time.time()) + 3600
    wanted = ReservationUpdate(
        name="SlurmOperatorMaint-cpu",
        start_time=number(start),
        duration=number(60),
        flags=["MAINT", "IGNORE_JOBS"],
        users=["slurm"],
        node_list=[compress(["sim-01", "sim-03", "sim-04"])],
    )
    await client.put_reservation(wanted)
    await client.put_reservation(wanted)
    (held,) = await client.reservations()
    assert (held.name, held.node_list, held.users) == ("SlurmOperatorMaint-cpu", "sim-[01,03-04]", "slurm")
    assert {"MAINT", "IGNORE_JOBS"} <= set(held.flags)
    assert (held.start_time.number, held.end_time.number) == (start, start + 3600)
    await client.delete_reservation("SlurmOperatorMaint-cpu")
    assert await client.reservations() == []
    with pytest.raises(NotFound, match="Requested reservation is invalid"):
        await client.delete_reservation("SlurmOperatorMaint-cpu")


async def test_reconfigure_keeps_nodes(cluster: SlurmCluster) -> None:
    cluster.create_nodes("sim-[1-3]")
    client = client_of(cluster)
    await client.reconfigure()
    assert len(await nodes_of(client)) == 3


async def test_slurm_reads_our_hostlists_and_we_read_its(cluster: SlurmCluster) -> None:
    names = [
        "a1",
        "a2",
        "a9",
        "a10",
        "a01",
        "gpu-007",
        "gpu-008",
        "gpu-100",
        "ip-10-0-1-2",
        "ip-10-0-1-3",
        "login",
    ]
    shown = cluster.run("scontrol", "show", "hostnames", compress(names)).split()
    assert sorted(shown) == sorted(names)
    theirs = cluster.run("scontrol", "show", "hostlist", ",".join(names)).strip()
    assert sorted(expand(theirs)) == sorted(names)
    for text in ("rack[0-1]n[01-03]", "a[1-3,07]x", "a[1-2],b[3-4]c[5-6]"):
        assert expand(text) == cluster.run("scontrol", "show", "hostnames", text).split()
