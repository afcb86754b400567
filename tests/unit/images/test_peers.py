"""What the inits of several slurmctld read of each other, and what they do about it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from images.init.coil_init.guard import Claim, Todo
from images.init.coil_init.handover import Pulse, Request
from images.init.coil_init.peers import Heartbeat, leave_note, parse, read_heartbeat, read_note

CONF = """
ClusterName=c
SlurmctldHost=c-0(c-0.c-internal.ns)
  slurmctldhost = c-1 # no address
SlurmctldPort=6900
StateSaveLocation=/var/spool/slurmctld/c
SlurmctldTimeout=15
#SlurmctldHost=c-2
"""
A, B = Heartbeat(100, 0), Heartbeat(120, 1)


def later(beat: Heartbeat, seconds: int = 4) -> Heartbeat:
    return Heartbeat(beat.time + seconds, beat.index)


def test_the_hosts_of_a_cluster() -> None:
    found = parse(CONF, "c-1")
    assert found is not None
    assert found.hosts == (("c-0", "c-0.c-internal.ns"), ("c-1", "c-1"))
    assert (found.own, found.port, found.timeout_s, str(found.state)) == (
        1,
        6900,
        15,
        "/var/spool/slurmctld/c",
    )


@pytest.mark.parametrize(
    "text",
    [
        CONF.replace("  slurmctldhost = c-1 # no address\n", ""),
        CONF.replace("StateSaveLocation", "X"),
        CONF.replace("c-1", "d"),
    ],
)
def test_nothing_is_done_without_backups_or_for_a_host_that_is_none_of_them(text: str) -> None:
    assert parse(text, "c-1") is None


def test_a_heartbeat_is_read_as_slurmctld_writes_it(tmp_path: Path) -> None:
    assert read_heartbeat(tmp_path) is None
    (tmp_path / "heartbeat").write_bytes(bytes.fromhex("000000006b0e00ed0000000000000001"))
    assert read_heartbeat(tmp_path) == Heartbeat(0x6B0E00ED, 1)
    (tmp_path / "heartbeat").write_bytes(struct.pack(">Q", 1))
    assert read_heartbeat(tmp_path) is None


def test_half_a_note_is_none(tmp_path: Path) -> None:
    assert read_note(tmp_path, "n") == ""
    leave_note(tmp_path, "n", "c-1 7")
    assert read_note(tmp_path, "n") == "c-1 7"
    (tmp_path / "n").write_text("c-")
    assert read_note(tmp_path, "n") == ""


def test_a_request_is_read_as_it_is_written() -> None:
    assert Request.parse(str(Request("c-1", 7))) == Request("c-1", 7)
    assert [Request.parse(line) for line in ("", "c-1", "c-1 x", " 7")] == [None] * 4


def claims(own: int, *looks: tuple[Heartbeat | None, str]) -> list[Todo]:
    claim = Claim(own, f"c-{own}")
    return [claim.look(beat, mark, None) for beat, mark in looks]


def test_a_slurmctld_that_becomes_active_is_marked_once() -> None:
    found = claims(1, (A, "c-0"), (B, "c-0"), (B, "c-1"), (later(B), "c-1"))
    assert found == [Todo.NOTHING, Todo.MARK, Todo.NOTHING, Todo.NOTHING]
    assert claims(0, (None, ""), (A, ""), (later(A), "")) == [Todo.NOTHING, Todo.NOTHING, Todo.MARK]


def test_a_heartbeat_from_before_the_start_says_nothing() -> None:
    assert claims(1, (B, "c-1"), (B, "c-1"), (A, "c-0"), (later(A), "c-0")) == [Todo.NOTHING] * 4


def test_one_that_goes_on_after_another_became_active_is_ended() -> None:
    """Whatever the heartbeat says by then: it may have written its own again."""
    for beat in (B, Heartbeat(130, 0), None):
        assert claims(0, (A, "c-0"), (later(A), "c-0"), (beat, "c-1"))[-1] is Todo.END


def test_the_one_that_took_over_survives_a_heartbeat_of_the_old_one() -> None:
    found = claims(1, (A, "c-0"), (B, "c-0"), (Heartbeat(130, 0), "c-1"), (Heartbeat(131, 1), "c-1"))
    assert found == [Todo.NOTHING, Todo.MARK, Todo.NOTHING, Todo.NOTHING]


def test_a_mark_that_could_not_be_left_ends_nothing() -> None:
    found = claims(1, (A, "c-0"), (B, "c-0"), (later(B), "c-0"), (later(B), "c-0"))
    assert found == [Todo.NOTHING, Todo.MARK, Todo.MARK, Todo.MARK]


def test_a_mark_that_is_half_written_is_not_written_over() -> None:
    found = claims(0, (A, "c-0"), (later(A), "c-0"), (later(A), ""), (later(A), "c-1"))
    assert found[2:] == [Todo.NOTHING, Todo.END]


def test_slow_storage_ends_nothing() -> None:
    """A heartbeat that stays old or cannot be read is no proof that another took over."""
    old = [(later(A), "c-0")] * 100
    assert set(claims(0, (A, "c-0"), *old, (None, "c-0"))) == {Todo.NOTHING}


def test_only_the_active_one_makes_way_and_only_for_a_request_of_this_time() -> None:
    active = Claim(1, "c-1", since=120, last=B)
    assert active.look(later(B), "c-1", Request("c-1", 124)) is Todo.MAKE_WAY
    assert active.look(later(B), "c-1", Request("c-1", 119)) is Todo.NOTHING
    assert active.look(later(B), "c-1", Request("c-2", 124)) is Todo.NOTHING
    assert Claim(1, "c-1", last=A).look(later(A), "c-0", Request("c-1", 124)) is Todo.NOTHING


def test_a_heartbeat_beats_until_it_has_stood_still_for_the_timeout() -> None:
    pulse = Pulse(15)
    assert pulse.beats(A, now=110, monotonic=0)
    assert pulse.beats(A, now=0, monotonic=5)
    assert not pulse.beats(A, now=0, monotonic=5.1)
    assert pulse.beats(later(A), now=0, monotonic=6)


def test_the_clock_of_another_machine_is_not_trusted_for_long() -> None:
    """One that is ahead looks alive at first, one that is behind looks dead until it changes."""
    ahead, behind = Pulse(15), Pulse(15)
    assert ahead.beats(A, now=50, monotonic=0)
    assert not ahead.beats(A, now=66, monotonic=16)
    assert not behind.beats(A, now=200, monotonic=0)
    assert behind.beats(later(A), now=201, monotonic=1)
