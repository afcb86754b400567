"""The queue's bookkeeping, without a loop: examples, then a model for any sequence of calls."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coil.kube.workset import Priority, Spacing, WorkSet
from coil.support.objects import ObjectKey

A, B, C = (ObjectKey("ns", name) for name in "abc")
NO_REST = Spacing(least=0.0, most=0.0)


def taken(work: WorkSet, now: float) -> list[ObjectKey]:
    """Take all that is ready at `now`."""
    keys: list[ObjectKey] = []
    while (item := work.take(now)) is not None:
        keys.append(item.key)
    return keys


@pytest.fixture
def work() -> WorkSet:
    return WorkSet(NO_REST)


def test_keys_come_out_in_the_order_they_came_in(work: WorkSet) -> None:
    for key in (B, A, C):
        work.add(key, 0.0)
    assert taken(work, 0.0) == [B, A, C]


def test_a_key_added_often_comes_out_once(work: WorkSet) -> None:
    for _ in range(100):
        work.add(A, 0.0)
    assert taken(work, 0.0) == [A]


def test_a_key_in_work_is_not_given_out_again(work: WorkSet) -> None:
    work.add(A, 0.0)
    assert taken(work, 0.0) == [A]
    work.add(A, 1.0)
    assert taken(work, 1.0) == []
    work.done(A, 2.0)
    assert taken(work, 2.0) == [A]


def test_done_without_news_gives_nothing_more(work: WorkSet) -> None:
    work.add(A, 0.0)
    taken(work, 0.0)
    work.done(A, 1.0)
    assert taken(work, 9.0) == []


def test_changes_come_before_resyncs(work: WorkSet) -> None:
    work.add(A, 0.0, Priority.RESYNC)
    work.add(B, 0.0, Priority.CHANGE)
    assert taken(work, 0.0) == [B, A]


def test_a_change_lifts_a_key_that_waits_for_a_resync(work: WorkSet) -> None:
    work.add(A, 0.0, Priority.RESYNC)
    work.add(B, 0.0, Priority.RESYNC)
    work.add(B, 0.0, Priority.CHANGE)
    assert taken(work, 0.0) == [B, A]


def test_a_resync_does_not_lower_a_key_that_changed(work: WorkSet) -> None:
    work.add(A, 0.0, Priority.CHANGE)
    work.add(A, 0.0, Priority.RESYNC)
    work.add(B, 0.0, Priority.CHANGE)
    assert taken(work, 0.0) == [A, B]


def test_a_key_in_work_that_is_lifted_keeps_its_new_priority(work: WorkSet) -> None:
    work.add(A, 0.0)
    taken(work, 0.0)
    work.add(A, 0.0, Priority.RESYNC)
    work.add(A, 0.0, Priority.CHANGE)
    work.add(B, 0.0, Priority.RESYNC)
    work.done(A, 0.0)
    assert taken(work, 0.0) == [A, B]


def test_a_delayed_key_comes_when_its_time_has_come(work: WorkSet) -> None:
    work.add_after(A, 5.0, 0.0)
    assert taken(work, 4.9) == []
    assert work.next_due() == 5.0
    assert taken(work, 5.0) == [A]


@pytest.mark.parametrize("delays", [(30.0, 5.0), (5.0, 30.0)])
def test_the_smallest_delay_wins_and_the_other_is_gone(work: WorkSet, delays: tuple[float, float]) -> None:
    for delay in delays:
        work.add_after(A, delay, 0.0)
    assert taken(work, 5.0) == [A]
    work.done(A, 5.0)
    assert taken(work, 99.0) == []


def test_a_delay_stays_when_the_key_is_added_before_it_ends(work: WorkSet) -> None:
    work.add_after(A, 30.0, 0.0)
    work.add(A, 1.0)
    assert taken(work, 1.0) == [A]
    work.done(A, 1.0)
    assert taken(work, 30.0) == [A]


def test_a_delay_that_ends_while_the_key_is_in_work_counts_as_news(work: WorkSet) -> None:
    work.add(A, 0.0)
    taken(work, 0.0)
    work.add_after(A, 1.0, 0.0)
    assert taken(work, 2.0) == []
    work.done(A, 3.0)
    assert taken(work, 3.0) == [A]


def test_a_lone_change_is_taken_at_once_and_the_next_after_a_rest() -> None:
    work = WorkSet(Spacing(least=0.02))
    work.add(A, 0.0)
    assert taken(work, 0.0) == [A]
    work.done(A, 1.0)
    work.add(A, 1.01)
    assert taken(work, 1.01) == []
    assert work.next_due() == 1.02
    assert taken(work, 1.02) == [A]


def test_what_happens_during_a_pass_waits_for_the_rest_too() -> None:
    work = WorkSet(Spacing(least=0.02))
    work.add(A, 0.0)
    taken(work, 0.0)
    work.add(A, 0.5)
    work.done(A, 1.0)
    assert taken(work, 1.0) == []
    assert taken(work, 1.02) == [A]


def test_rests_grow_in_a_storm_and_end_with_it() -> None:
    spacing = Spacing(least=0.02, most=0.5, storm=2)
    rests = [0.0]
    for _ in range(8):
        rests.append(spacing.after(rests[-1], merged=2))
    assert rests[1:] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5, 0.5]
    assert spacing.after(0.5, merged=1) == 0.02


def storm(changes_per_second: int, seconds: int, length: float = 0.0) -> int:
    """Passes over one key while it changes that often, each pass taking `length` seconds."""
    work, passes, end = WorkSet(), 0, float("inf")
    for tick in range(changes_per_second * seconds):
        now = tick / changes_per_second
        work.add(A, now)
        if now >= end:
            work.done(A, now)
        if taken(work, now):
            passes, end = passes + 1, now + length
    return passes


@pytest.mark.parametrize("length", [0.0, 0.045, 1.0])
def test_a_storm_of_changes_is_a_handful_of_passes(length: float) -> None:
    assert storm(5000, seconds=1, length=length) <= 8
    assert storm(250, seconds=20, length=length) <= 50


def test_slow_passes_leave_time_to_others() -> None:
    """Half a second of rest follows each pass of a storm, however long the passes are."""
    assert storm(250, seconds=60, length=1.0) <= 60 / 1.5 + 5


def test_a_storm_on_one_key_does_not_delay_another() -> None:
    work = WorkSet()
    for tick in range(1000):
        work.add(A, tick / 1000)
        for key in taken(work, tick / 1000):
            work.done(key, tick / 1000)
    work.add(B, 1.0)
    assert B in taken(work, 1.0)


def test_nothing_is_remembered_of_keys_at_rest() -> None:
    """Keys come and go for years: a key without news must cost no memory."""
    work = WorkSet()
    for number in range(100):
        key = ObjectKey("ns", str(number))
        work.add(key, 0.0)
        taken(work, 0.0)
        work.done(key, 0.0)
    assert taken(work, 10.0) == []
    assert not work._rests
    assert not work._alarms
    assert not work._waiting


class Model(RuleBasedStateMachine):
    """What may be said of the keys at any moment, whatever was done before."""

    keys = st.sampled_from([A, B, C])

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.work = WorkSet(Spacing(least=0.5, most=4.0, storm=2))
        self.news: dict[ObjectKey, Priority] = {}
        self.delays: dict[ObjectKey, float] = {}
        self.in_work: set[ObjectKey] = set()
        self.last_end: dict[ObjectKey, float] = {}

    @rule(key=keys, priority=st.sampled_from(Priority))
    def add(self, key: ObjectKey, priority: Priority) -> None:
        self.work.add(key, self.now, priority)
        self.news[key] = min(priority, self.news.get(key, priority))

    @rule(key=keys, delay=st.sampled_from([0.0, 0.25, 1.0, 5.0]))
    def add_after(self, key: ObjectKey, delay: float) -> None:
        self.work.add_after(key, delay, self.now)
        self.delays[key] = min(self.now + delay, self.delays.get(key, float("inf")))

    @rule(seconds=st.sampled_from([0.25, 0.5, 3.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        item = self.work.take(self.now)
        for key, due in list(self.delays.items()):
            if due <= self.now:
                del self.delays[key]
                self.news[key] = min(Priority.RESYNC, self.news.get(key, Priority.RESYNC))
        if item is None:
            self.check_nothing_is_overdue()
            return
        assert item.key not in self.in_work, "a key in work was given out"
        assert item.key in self.news, "a key nobody added was given out"
        assert item.priority == self.news.pop(item.key)
        assert self.now - self.last_end.get(item.key, -1.0) >= 0.5, "a rest was cut short"
        self.in_work.add(item.key)

    def check_nothing_is_overdue(self) -> None:
        for key in self.news.keys() - self.in_work:
            assert self.now - self.last_end.get(key, -9.0) < 4.0, "a key was forgotten"

    @precondition(lambda self: self.in_work)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.in_work)))
        self.work.done(key, self.now)
        self.in_work.remove(key)
        self.last_end[key] = self.now

    @invariant()
    def work_is_known(self) -> None:
        assert set(self.work.working) == self.in_work

    @invariant()
    def there_is_an_alarm_for_whatever_will_become_ready(self) -> None:
        if self.delays or (self.news.keys() - self.in_work):
            assert len(self.work) or self.work.next_due() is not None

    def teardown(self) -> None:
        """Everything that was added comes out in the end."""
        for key in list(self.in_work):
            self.work.done(key, self.now)
        out: set[ObjectKey] = set()
        for _ in range(20):
            self.now += 1.0
            for key in taken(self.work, self.now):
                out.add(key)
                self.work.done(key, self.now)
        assert self.news.keys() | self.delays.keys() <= out


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
