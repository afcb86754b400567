"""The guard against a stale cache (spec: nodeset 8.3)."""

import pytest

from coil.kube.expectations import EXPIRY, Expectations
from coil.support.objects import ObjectKey

OWNER, OTHER = ObjectKey("ns", "nodeset"), ObjectKey("ns", "other")
P, Q = ObjectKey("ns", "p"), ObjectKey("ns", "q")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def expectations(clock: Clock) -> Expectations:
    return Expectations(clock)


def test_nothing_expected_is_satisfied(expectations: Expectations) -> None:
    assert expectations.satisfied(OWNER)


def test_creations_hold_back_until_all_are_seen(expectations: Expectations) -> None:
    expectations.expect_creations(OWNER, 2)
    expectations.creation_observed(OWNER)
    assert not expectations.satisfied(OWNER)
    expectations.creation_observed(OWNER)
    assert expectations.satisfied(OWNER)


def test_creations_add_up(expectations: Expectations) -> None:
    expectations.expect_creations(OWNER, 2)
    expectations.expect_creations(OWNER, 3)
    expectations.creation_observed(OWNER, 5)
    assert expectations.satisfied(OWNER)


def test_more_seen_than_expected_is_satisfied(expectations: Expectations) -> None:
    expectations.expect_creations(OWNER, 1)
    expectations.creation_observed(OWNER, 3)
    assert expectations.satisfied(OWNER)


def test_a_deletion_seen_twice_counts_once(expectations: Expectations) -> None:
    """A pod is seen to go when it is marked and again when it is gone."""
    expectations.expect_deletions(OWNER, [P, Q])
    expectations.deletion_observed(OWNER, P)
    expectations.deletion_observed(OWNER, P)
    assert not expectations.satisfied(OWNER)
    expectations.deletion_observed(OWNER, Q)
    assert expectations.satisfied(OWNER)


def test_a_deletion_nobody_expected_changes_nothing(expectations: Expectations) -> None:
    expectations.expect_deletions(OWNER, [P])
    expectations.deletion_observed(OWNER, Q)
    assert not expectations.satisfied(OWNER)


def test_the_same_key_twice_is_one_deletion(expectations: Expectations) -> None:
    expectations.expect_deletions(OWNER, [P, P])
    expectations.deletion_observed(OWNER, P)
    assert expectations.satisfied(OWNER)


def test_expecting_deletions_starts_over(expectations: Expectations) -> None:
    expectations.expect_creations(OWNER, 5)
    expectations.expect_deletions(OWNER, [P])
    expectations.deletion_observed(OWNER, P)
    assert expectations.satisfied(OWNER)


def test_a_creation_taken_for_failed_that_shows_after_all_does_not_count_for_the_next(
    expectations: Expectations,
) -> None:
    """A request timed out and was committed: the next pod is awaited nevertheless."""
    expectations.expect_creations(OWNER, 1)
    expectations.creation_observed(OWNER)
    expectations.creation_observed(OWNER)
    expectations.expect_creations(OWNER, 1)
    assert not expectations.satisfied(OWNER)
    expectations.creation_observed(OWNER)
    assert expectations.satisfied(OWNER)


@pytest.mark.parametrize("surplus", [1, 5])
def test_objects_that_others_made_do_not_count_for_later_ones(
    expectations: Expectations, surplus: int
) -> None:
    expectations.reset(OWNER)
    expectations.creation_observed(OWNER, surplus)
    expectations.expect_creations(OWNER, 1)
    assert not expectations.satisfied(OWNER)


def test_a_lost_event_holds_back_for_a_minute_at_most(expectations: Expectations, clock: Clock) -> None:
    expectations.expect_creations(OWNER, 1)
    clock.now += EXPIRY
    assert not expectations.satisfied(OWNER)
    clock.now += 1
    assert expectations.satisfied(OWNER)


def test_an_object_that_came_and_went_unseen_holds_back_for_a_minute_at_most(
    expectations: Expectations, clock: Clock
) -> None:
    """I6: of the others each event was seen; the one made and deleted in a gap of the watch never shows."""
    expectations.expect_creations(OWNER, 3)
    expectations.creation_observed(OWNER, 2)
    clock.now += 60
    assert expectations.satisfied(OWNER)


def test_a_long_pass_is_waited_for_while_it_makes_progress(expectations: Expectations, clock: Clock) -> None:
    expectations.expect_creations(OWNER, 3)
    for _ in range(2):
        clock.now += EXPIRY
        expectations.creation_observed(OWNER)
    clock.now += EXPIRY
    assert not expectations.satisfied(OWNER)
    expectations.expect_deletions(OWNER, [P, Q])
    clock.now += EXPIRY
    expectations.deletion_observed(OWNER, P)
    clock.now += EXPIRY
    assert not expectations.satisfied(OWNER)


def test_events_that_nobody_waits_for_are_no_progress(expectations: Expectations, clock: Clock) -> None:
    expectations.expect_deletions(OWNER, [P])
    for _ in range(3):
        clock.now += EXPIRY / 2
        expectations.creation_observed(OWNER)
        expectations.creation_observed(OWNER, 0)
        expectations.deletion_observed(OWNER, Q)
    assert expectations.satisfied(OWNER)


def test_new_creations_renew_the_wait(expectations: Expectations, clock: Clock) -> None:
    expectations.reset(OWNER)
    clock.now += 2 * EXPIRY
    expectations.expect_creations(OWNER, 1)
    assert not expectations.satisfied(OWNER)


def test_owners_do_not_share(expectations: Expectations) -> None:
    expectations.expect_creations(OWNER, 1)
    assert expectations.satisfied(OTHER)


def test_reset_and_forget_satisfy(expectations: Expectations) -> None:
    expectations.expect_creations(OWNER, 1)
    expectations.reset(OWNER)
    assert expectations.satisfied(OWNER)
    expectations.expect_creations(OTHER, 1)
    expectations.forget(OTHER)
    assert expectations.satisfied(OTHER)


def test_observations_of_unknown_owners_are_ignored(expectations: Expectations) -> None:
    expectations.creation_observed(OWNER)
    expectations.deletion_observed(OWNER, P)
    assert expectations.satisfied(OWNER)
