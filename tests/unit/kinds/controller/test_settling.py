"""Claims about waiting for a configuration to stop changing."""

import pytest

from coil.kinds.controller.settling import LIMIT_S, LONE_S, QUIET_S, Settling
from coil.support.objects import ObjectKey

ALBA = ObjectKey("ns", "alba")


def test_a_configuration_is_used_once_it_was_quiet() -> None:
    settling = Settling()
    assert settling.remaining(ALBA, "a", 100.0) == QUIET_S
    assert settling.remaining(ALBA, "a", 100.2) == pytest.approx(QUIET_S - 0.2)
    assert settling.remaining(ALBA, "a", 100.0 + QUIET_S) == 0


def test_each_change_starts_the_wait_again_up_to_a_limit() -> None:
    settling = Settling()
    waits = [settling.remaining(ALBA, str(step), step * 0.4) for step in range(8)]
    assert waits[:6] == [QUIET_S] * 6
    assert waits[7] == pytest.approx(LIMIT_S - 7 * 0.4)
    assert settling.remaining(ALBA, "8", LIMIT_S) == 0


def test_what_was_rolled_out_is_forgotten() -> None:
    settling = Settling()
    settling.remaining(ALBA, "a", 0.0)
    settling.done(ALBA)
    assert settling.remaining(ALBA, "a", 50.0) == QUIET_S


def test_controllers_do_not_wait_for_one_another() -> None:
    settling = Settling()
    settling.remaining(ALBA, "a", 0.0)
    assert settling.remaining(ObjectKey("ns", "beta"), "b", 0.4) == QUIET_S
    assert settling.remaining(ALBA, "a", QUIET_S) == 0


def test_a_controller_without_nodesets_waits_longer_until_the_first_one_comes() -> None:
    settling = Settling()
    assert settling.remaining(ALBA, "a", 0.0, LONE_S) == LONE_S
    assert settling.remaining(ALBA, "a", 1.0, LONE_S) == LONE_S - 1.0
    assert settling.remaining(ALBA, "b", 1.0) == QUIET_S
    assert settling.remaining(ALBA, "b", 1.0 + QUIET_S) == 0
