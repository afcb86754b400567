"""What live configuration relies on, asked from real daemons (docs/configuration.md)."""

import asyncio
import time
from pathlib import Path

import pytest

from coil.slurm.client import SlurmClient
from coil.slurm.errors import SlurmError
from coil.slurm.tokens import TokenSource
from coil.slurm.wire import NodesReply, RunningConfiguration
from coil.support.confhash import conf_hash
from tests.support.slurm import SlurmCluster

pytestmark = [pytest.mark.slurm, pytest.mark.asyncio]


async def reconfigured(client: SlurmClient, wanted: int | None) -> RunningConfiguration:
    """Reconfigure and give what slurmctld runs with, at the latest after 5 s."""
    await client.reconfigure()
    deadline = time.monotonic() + 5
    while True:
        try:
            found = await client.configuration()
        except SlurmError:
            found = None
        if found is not None and found.hash == wanted:
            return found
        assert time.monotonic() < deadline, found


async def test_slurmctld_names_its_configuration_by_a_hash_that_we_can_foresee(cluster: SlurmCluster) -> None:
    client = SlurmClient(cluster.base_url, TokenSource(cluster.jwt_key))
    file, more = cluster.state / "etc/slurm.conf", cluster.state / "etc/more.conf"
    base = file.read_text()
    for text, included in (
        (f"{base}# a comment\n", ""),
        (f"{base}\n  \n# ümläut\n", ""),
        (f"{base}MaxJobCount=123 \\\n# continued\n", ""),
        (f"{base}Include more.conf\nMaxArraySize=5\n", "MaxJobCount=98\n"),
        (f"{base}Include more.conf\nMaxArraySize=5\n", "MaxJobCount=99\n"),
        (base, ""),
    ):
        _write(file, text)
        _write(more, included)
        await reconfigured(client, conf_hash(text, {"more.conf": included}))


async def test_a_reconfigure_starts_both_programs_anew_and_keeps_the_node(cluster: SlurmCluster) -> None:
    client = SlurmClient(cluster.base_url, TokenSource(cluster.jwt_key))
    cluster.start_worker("w-0")
    before = await client.configuration()
    assert before
    await asyncio.sleep(before.since + 2 - time.time())  # its clock counts whole seconds
    file = cluster.state / "etc/slurm.conf"
    text = f"{file.read_text()}# x\n"
    _write(file, text)
    found = await reconfigured(client, conf_hash(text))
    assert found.since > before.since
    deadline = time.monotonic() + 10
    while True:
        reply = await client.nodes()
        assert isinstance(reply, NodesReply)
        (node,) = reply.nodes
        if node.started_at.number >= found.since:
            return
        assert time.monotonic() < deadline, node


def _write(file: Path, text: str) -> None:
    file.write_text(text)
