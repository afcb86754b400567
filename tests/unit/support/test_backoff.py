import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.support.backoff import Backoff


def test_delays_double_up_to_the_cap() -> None:
    backoff = Backoff(base=0.5, cap=30.0)
    assert [backoff.nominal(failures) for failures in range(9)] == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]


@given(st.integers(0, 10**9), st.floats(0, 1, exclude_max=True))
def test_jitter_shortens_by_its_share_at_most(failures: int, chance: float) -> None:
    backoff = Backoff(base=0.005, cap=60.0, jitter=0.5)
    nominal = backoff.nominal(failures)
    assert nominal / 2 <= backoff.delay(failures, lambda: chance) <= nominal <= 60.0


@pytest.mark.parametrize("failures", [0, -1])
def test_without_failure_there_is_no_delay(failures: int) -> None:
    assert Backoff(base=1, cap=2).delay(failures) == 0


def test_two_clients_do_not_come_back_together() -> None:
    backoff = Backoff(base=1, cap=60)
    assert len({backoff.delay(5) for _ in range(20)}) > 10
