"""Before the preferred slurmctld starts, with a backup whose heartbeat is fresh."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from images.init.coil_init.handover import NOTE, Handover
from images.init.coil_init.peers import leave_note, read_note


@pytest.fixture
def closed_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(folder: Path, port: int, *, backup: str, timeout_s: int) -> threading.Thread:
    """Begin the hand-over of a host whose backup has just written its heartbeat."""
    conf = folder / "slurm.conf"
    conf.write_text(
        f"SlurmctldHost={socket.gethostname()}\nSlurmctldHost=backup({backup})\nSlurmctldPort={port}\n"
        f"StateSaveLocation={folder}\nSlurmctldTimeout={timeout_s}\n"
    )
    (folder / "heartbeat").write_bytes(struct.pack(">QQ", int(time.time()), 1))
    thread = threading.Thread(target=Handover(str(conf)), daemon=True)
    thread.start()
    return thread


def test_it_asks_and_waits_until_the_note_is_emptied(tmp_path: Path, closed_port: int) -> None:
    """A slurmctld that is about to end has closed its port, and may not have written its state yet."""
    thread = start(tmp_path, closed_port, backup="127.0.0.1", timeout_s=60)
    deadline = time.monotonic() + 10
    while not read_note(tmp_path, NOTE).startswith("backup "):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    thread.join(0.5)
    assert thread.is_alive()
    leave_note(tmp_path, NOTE, "")
    thread.join(5)
    assert not thread.is_alive()


def test_it_asks_nothing_of_a_host_out_of_reach_and_waits_for_its_heartbeat_to_stop(
    tmp_path: Path, closed_port: int
) -> None:
    began = time.monotonic()
    thread = start(tmp_path, closed_port, backup="nowhere.invalid", timeout_s=2)
    thread.join(20)
    assert not thread.is_alive()
    assert time.monotonic() - began > 1
    assert read_note(tmp_path, NOTE) == ""
