"""Claims about what a pass comes to, for every kind alike."""

import pytest

from coil.kinds.frame import PERIOD_S, control, outcome
from coil.kinds.status import Problem
from coil.kinds.steps import PassFailedError
from coil.kube.controller import DONE, After, Result
from coil.support.objects import ObjectKey
from tests.support.runtime import offline_runtime

LASTING = Problem("Config", "SecretMissing", "Secret gone")
PASSING = Problem("Service", "PatchFailed", "no answer", retry=True)


def test_without_problems_it_comes_to_what_the_kind_says() -> None:
    assert outcome([]) is DONE
    assert outcome([], After(5.0)) == After(5.0)


def test_what_only_a_change_of_the_world_cures_is_looked_at_once_a_minute() -> None:
    """Invariant I6: whatever was missed, the next pass comes within 60 s."""
    assert outcome([LASTING], After(5.0)) == After(PERIOD_S)
    assert PERIOD_S <= 60


def test_what_may_be_cured_by_trying_again_fails_the_pass() -> None:
    with pytest.raises(PassFailedError, match=r"step Config: Secret gone; step Service: no answer"):
        outcome([LASTING, PASSING])


@pytest.mark.asyncio
async def test_a_kind_is_run_by_the_manager_and_given_its_queue() -> None:
    async def reconcile(_: ObjectKey) -> Result:
        return DONE

    runtime = offline_runtime(workers={"token": 3})
    queue = control(runtime, "token", "token", reconcile, [])
    assert [controller.queue for controller in runtime.controllers] == [queue]
