"""The reflector's decisions, transition by transition, without I/O."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.kube.errors import ApiError, Gone, Status, Timeout, Unavailable
from coil.kube.following import (
    STRIKES,
    Complete,
    Ended,
    Listed,
    Listing,
    Put,
    Remove,
    Skip,
    State,
    Watching,
    problem,
    step,
)
from coil.kube.views import PodView
from coil.kube.wire import (
    Added,
    Bare,
    BareMeta,
    Bookmark,
    Deleted,
    Failed,
    Modified,
    Page,
    Undecodable,
)
from coil.support.objects import ObjectKey, ObjectMeta

CUT = Ended(Unavailable(message="connection reset"))
GONE = Ended(Gone(410, "Expired"))
CLEAN = Ended()
SILENT = Ended(Timeout(message="silent"))


def pod(name: str, version: str = "1") -> PodView:
    return PodView(metadata=ObjectMeta(name=name, namespace="ns", resource_version=version))


def key(name: str) -> ObjectKey:
    return ObjectKey("ns", name)


def deleted(name: str, version: str) -> Deleted:
    return Deleted(Bare(BareMeta(name, "ns", version)))


def bookmark(version: str) -> Bookmark:
    return Bookmark(Bare(BareMeta(resource_version=version)))


def follow(state: State, *seen: object) -> State:
    for one in seen:
        state = step(state, one).state  # type: ignore[arg-type]
    return state


def test_a_page_with_more_to_come_is_taken_in_and_the_next_is_asked_for() -> None:
    result = step(Listing(), Page([pod("a")], "7", "next"))
    assert result.state == Listing("next", seen=(frozenset({key("a")}),))
    assert result.effects == [Put([pod("a")])]


def test_the_last_page_completes_the_list_with_all_that_was_seen() -> None:
    state = follow(Listing(), Page([pod("a")], "7", "next"))
    result = step(state, Page([pod("b")], "7"))
    assert result.state == Listed("7")
    assert result.effects == [Put([pod("b")]), Complete(frozenset({key("a"), key("b")}))]


def test_an_empty_list_is_complete_too() -> None:
    assert step(Listing(), Page([], "7")).effects == [Put([]), Complete(frozenset())]


def test_an_undecodable_object_of_a_page_has_not_vanished() -> None:
    bad = Undecodable(key("bad"), "3", "expected int")
    result = step(Listing(), Page([pod("a")], "7", undecodable=(bad,)))
    assert result.effects == [Put([pod("a")]), Skip(bad), Complete(frozenset({key("a"), key("bad")}))]


def test_a_failed_page_is_asked_for_again() -> None:
    state = follow(Listing(), Page([pod("a")], "7", "next"), CUT)
    assert state == Listing("next", seen=(frozenset({key("a")}),), failures=1)


def test_an_expired_token_starts_a_list_without_pages_that_has_seen_nothing() -> None:
    """What the pages so far showed may have vanished since; only the new list may say."""
    state = follow(Listing(), Page([pod("a")], "7", "next"), GONE)
    assert state == Listing(paged=False, failures=1)


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        (Added(pod("a", "8")), Put((pod("a", "8"),))),
        (Modified(pod("a", "8")), Put((pod("a", "8"),))),
        (deleted("a", "8"), Remove(key("a"))),
        (Undecodable(key("a"), "8", "odd"), Skip(Undecodable(key("a"), "8", "odd"))),
    ],
)
@pytest.mark.parametrize("state", [Listed("7", failures=2, strikes=2), Watching("7", failures=1)])
def test_a_line_changes_the_store_and_the_place_to_resume_from(
    state: State, line: object, effect: object
) -> None:
    result = step(state, line)  # type: ignore[arg-type]
    assert result.state == Watching("8")
    assert tuple(result.effects) == (effect,)


def test_a_bookmark_only_moves_the_place_to_resume_from() -> None:
    result = step(Watching("7"), bookmark("900"))
    assert (result.state, tuple(result.effects)) == (Watching("900"), ())


def test_a_watch_that_ends_is_resumed_from_the_last_version() -> None:
    assert follow(Listed("7"), Added(pod("a", "8")), CLEAN) == Listed("8")


def test_a_watch_that_breaks_is_resumed_after_a_pause() -> None:
    assert follow(Listed("7"), Added(pod("a", "8")), CUT) == Listed("8", failures=1)


@pytest.mark.parametrize("end", [CLEAN, CUT, SILENT, Failed(Status(code=500, reason="InternalError"))])
def test_three_watches_without_a_word_mean_list_again(end: object) -> None:
    state = follow(Listed("7"), *[end] * (STRIKES - 1))
    assert state == Listed("7", failures=2, strikes=2)
    assert follow(state, end) == Listing(failures=3)


def test_a_word_in_between_forgives_silent_watches() -> None:
    state = follow(Listed("7"), CLEAN, CLEAN, bookmark("8"), CLEAN, CLEAN, CLEAN)
    assert state == Listed("8", failures=2, strikes=2)


@pytest.mark.parametrize(
    "gone",
    [
        GONE,
        Failed(Status(code=410, reason="Expired", message="too old resource version")),
        Failed(Status(code=410, reason="Gone")),
        Failed(Status(reason="Expired")),
    ],
)
def test_gone_means_list_again_whatever_its_form(gone: object) -> None:
    assert follow(Watching("7"), gone) == Listing()
    assert follow(Listed("7"), gone) == Listing(failures=1)


def test_a_server_that_always_says_gone_is_asked_less_and_less() -> None:
    state: State = Listed("7")
    for round_ in range(1, 5):
        state = follow(state, GONE)
        assert state == Listing(failures=round_)
        state = follow(state, Page([], str(round_)))


def test_a_line_without_a_version_ends_the_watch() -> None:
    """There is no place to go on from behind it; three of them lead to a new list."""
    garbled = Undecodable(ObjectKey("", ""), "", "truncated")
    result = step(Watching("7"), garbled)
    assert result.state == Listed("7", failures=1)
    assert tuple(result.effects) == (Skip(garbled),)


def test_problems_are_told_apart_from_good_ends() -> None:
    assert problem(CLEAN) is None
    assert problem(bookmark("1")) is None
    assert isinstance(problem(Failed(Status(code=410))), Gone)
    assert isinstance(problem(CUT), Unavailable)
    assert isinstance(problem(Undecodable(ObjectKey("", ""), "", "x")), ApiError)


def test_inputs_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="while pages are read"):
        step(Listing(), bookmark("1"))
    with pytest.raises(ValueError, match="while a watch is open"):
        step(Watching("1"), Page([], "1"))


class Server:
    """A collection that changes, and pages and watches of it that fail as hypothesis likes."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.names: set[str] = set()

    @property
    def version(self) -> int:
        return len(self.log)

    def change(self, name: str) -> None:
        verb = "DELETED" if name in self.names else "ADDED"
        self.names ^= {name}
        self.log.append((verb, name))

    def lines_after(self, version: str) -> list[object]:
        return [
            deleted(name, str(number)) if verb == "DELETED" else Added(pod(name, str(number)))
            for number, (verb, name) in enumerate(self.log, start=1)
            if number > int(version)
        ]

    def page(self) -> Page[PodView]:
        return Page([pod(name, "x") for name in sorted(self.names)], str(self.version))


class Follower:
    """A state and what a store would know."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.state: State = Listing()
        self.known: set[str] = set()

    def take(self, seen: object) -> None:
        result = step(self.state, seen)  # type: ignore[arg-type]
        self.state = result.state
        for effect in result.effects:
            match effect:
                case Put(items=items):
                    self.known.update(item.metadata.name for item in items)
                case Remove(key=gone):
                    self.known.discard(gone.name)
                case Complete(seen=keys):
                    self.known.intersection_update(name.name for name in keys)

    def deliver(self, limit: int) -> None:
        """One page if a list is due, then so many lines of a watch."""
        if isinstance(self.state, Listing):
            self.take(self.server.page())
        for line in self.server.lines_after(self.state.version)[:limit]:  # type: ignore[union-attr]
            self.take(line)

    def act(self, action: object) -> None:
        if isinstance(action, str):
            self.server.change(action)
        elif isinstance(action, int):
            self.deliver(action)
        elif not (isinstance(self.state, Listing) and action is CLEAN):
            self.take(action)


ACTIONS = st.sampled_from("abcd") | st.integers(0, 3) | st.sampled_from([CLEAN, CUT, GONE, SILENT])


@given(st.lists(ACTIONS, max_size=60))
def test_whatever_is_cut_and_whenever_the_store_ends_up_equal(script: list[object]) -> None:
    """Letters change the server, numbers deliver so many lines, the rest ends the request."""
    server = Server()
    follower = Follower(server)
    for action in script:
        follower.act(action)
    follower.deliver(len(server.log))
    assert follower.known == server.names
