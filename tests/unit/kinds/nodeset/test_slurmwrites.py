"""Writes into Slurm: as few calls as possible, and what happens when some fail."""

from collections.abc import Iterable
from typing import Any, cast

import pytest

from coil.kinds.nodeset.actions import Action, Drain, Prune, Resume, SetComment, SetTopology, Undrain
from coil.kinds.nodeset.freshness import Freshness
from coil.kinds.nodeset.slurmwrites import SlurmWrites
from coil.slurm.client import SlurmClient
from coil.slurm.errors import NotFound, Rejected, SlurmError, SomeRefused, Unreachable
from coil.slurm.wire import JobsReply, SlurmJob
from tests.support.workers import job

pytestmark = pytest.mark.asyncio

ACTIONS: list[Action] = [
    Undrain(nodes=("a",)),
    Drain(nodes=("b", "c"), reason="slurm-operator: x"),
    Resume(nodes=("d",), why="old"),
]


class Recorder:
    """Stands where a client stands; notes what it is asked to write."""

    def __init__(self, *errors: SlurmError | None, jobs: Iterable[SlurmJob] = (), doubt: str = "") -> None:
        self.calls: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self._errors = list(errors)
        self._jobs = JobsReply(jobs=tuple(jobs), last_update=1, doubts=(doubt,) if doubt else ())

    async def update_nodes(self, names: Iterable[str], **values: Any) -> None:
        self.calls.append({"names": list(names), **values})
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error

    async def jobs(self) -> JobsReply:
        return self._jobs

    async def delete_node(self, name: str) -> None:
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error
        self.deleted.append(name)


def writes(recorder: Recorder) -> SlurmWrites:
    return SlurmWrites(cast("SlurmClient", recorder))


async def test_one_call_for_each_decision() -> None:
    recorder = Recorder()
    assert await writes(recorder).change_states(ACTIONS, Freshness()) == []
    assert recorder.calls == [
        {"names": ["a"], "state": "UNDRAIN", "reason": ""},
        {"names": ["b", "c"], "state": "DRAIN", "reason": "slurm-operator: x"},
        {"names": ["d"], "state": "IDLE"},
    ]


async def test_a_refused_node_does_not_hold_up_the_others() -> None:
    refused = SomeRefused("node update", {"a": Rejected("POST node/a", "no")})
    recorder = Recorder(refused)
    (problem,) = await writes(recorder).change_states(ACTIONS, Freshness())
    assert (problem.step, problem.reason, problem.retry) == ("SlurmNodes", "SomeRefused", True)
    assert len(recorder.calls) == 3


async def test_without_an_answer_the_rest_waits() -> None:
    recorder = Recorder(Unreachable("POST node/a", "refused"))
    (problem,) = await writes(recorder).change_states(ACTIONS, Freshness())
    assert problem.reason == "Unreachable"
    assert len(recorder.calls) == 1


async def test_descriptions_are_separate_steps() -> None:
    recorder = Recorder(Rejected("POST node/a", "no"))
    actions: list[Action] = [SetTopology(nodes=("a",), topology="t"), SetComment(node="a", comment="c")]
    (problem,) = await writes(recorder).describe(actions)
    assert problem.step == "SlurmPodInfo"
    assert recorder.calls == [{"names": ["a"], "comment": "c"}, {"names": ["a"], "topology": "t"}]


async def test_a_record_that_a_remembered_job_names_is_kept() -> None:
    recorder = Recorder(jobs=[job(1, "gpu-[7-8]", "COMPLETED")])
    removed, problems = await writes(recorder).prune([Prune(nodes=("gpu-8", "gpu-9"))], Freshness())
    assert (removed, problems, recorder.deleted) == (["gpu-9"], [], ["gpu-9"])


async def test_no_record_is_removed_when_jobs_may_be_missing() -> None:
    recorder = Recorder(doubt="one job could not be read")
    removed, (problem,) = await writes(recorder).prune([Prune(nodes=("gpu-9",))], Freshness())
    assert (removed, recorder.deleted) == ([], [])
    assert problem.step == "SlurmNodeRecords"


async def test_a_fault_of_the_program_is_no_problem_of_slurm() -> None:
    class Broken(Recorder):
        async def update_nodes(self, names: Iterable[str], **values: Any) -> None:
            raise KeyError(*names, *values)

    with pytest.raises(KeyError):
        await writes(Broken()).describe([SetComment(node="a", comment="c")])


async def test_one_record_that_is_kept_does_not_hold_up_the_others() -> None:
    recorder = Recorder(Rejected("DELETE node/a", "in use"), NotFound("DELETE node/b", "gone"))
    removed, (problem,) = await writes(recorder).prune([Prune(nodes=("a", "b", "c", "d"))], Freshness())
    assert (removed, recorder.deleted) == (["b", "c", "d"], ["c", "d"])
    assert problem.reason == "Rejected"


async def test_without_an_answer_no_more_records_are_removed() -> None:
    recorder = Recorder(Unreachable("DELETE node/a", "refused"))
    removed, (problem,) = await writes(recorder).prune([Prune(nodes=("a", "b"))], Freshness())
    assert (removed, recorder.deleted, problem.reason) == ([], [], "Unreachable")


async def test_a_refused_description_does_not_hold_up_the_others() -> None:
    recorder = Recorder(Rejected("POST node/a", "no"))
    actions: list[Action] = [SetComment(node=node, comment="c") for node in "abc"]
    (problem,) = await writes(recorder).describe(actions)
    assert problem.reason == "Rejected"
    assert [call["names"] for call in recorder.calls] == [["a"], ["b"], ["c"]]


async def test_without_an_answer_no_more_is_described() -> None:
    recorder = Recorder(Unreachable("POST node/a", "refused"))
    await writes(recorder).describe([SetComment(node=node, comment="c") for node in "abc"])
    assert len(recorder.calls) == 1
