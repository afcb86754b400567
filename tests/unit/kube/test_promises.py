"""Figures of several modules that together keep a promise."""

import socket

from coil.kube import expectations, lease, queue, reflector
from coil.kube.series import BURST, FORGET, PERIOD
from coil.kube.sockets import KEEPALIVE, Sockets
from coil.kube.transport import Limits

SOON = 60.0


def worst(backoff: reflector.Backoff) -> float:
    return max(backoff.delay(failures, lambda: 0.0) for failures in range(100))


def test_after_an_outage_the_next_list_begins_within_60_s() -> None:
    """I6: it may have ended just after a request had begun to hang."""
    assert Limits().deadline + worst(reflector.RETRY) < SOON


def test_a_server_that_vanished_is_noticed_in_time() -> None:
    """I6, for a watch, on which we never send."""
    probes = KEEPALIVE["TCP_KEEPIDLE"] + KEEPALIVE["TCP_KEEPINTVL"] * KEEPALIVE["TCP_KEEPCNT"]
    assert probes + reflector.RETRY.nominal(1) < SOON


def test_a_key_that_failed_for_hours_is_retried_within_60_s_after_the_outage() -> None:
    """I6: the request under way when the outage ends may hang until its deadline, then comes the pause."""
    assert Limits().deadline + worst(queue.RETRY) < SOON


def test_an_event_that_never_comes_holds_back_for_less_than_60_s() -> None:
    assert expectations.EXPIRY < SOON


def test_a_watch_may_be_silent_for_longer_than_bookmarks_are_apart() -> None:
    """A real server sent its first bookmark after 60.3 s."""
    assert Limits().silence > 61.5


def test_a_watch_is_asked_for_longer_than_it_may_be_silent() -> None:
    assert min(reflector.WATCH_SECONDS) > Limits().silence


def test_a_leader_gives_up_before_another_may_begin() -> None:
    timing = lease.Timing()
    assert timing.retry * (1 + lease.JITTER) + timing.renew < timing.duration


def test_a_series_is_remembered_longer_than_it_takes_to_write_it() -> None:
    assert FORGET > 2 * PERIOD
    assert BURST > 1


def test_probes_are_set() -> None:
    with Sockets().make((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == KEEPALIVE["TCP_KEEPIDLE"]
