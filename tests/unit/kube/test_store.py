"""The cache of one kind: what readers see and what handlers are told."""

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from coil.kube.store import Change, ChangeKind, Store
from coil.kube.views import PodSpecView, PodView
from coil.support.objects import ObjectKey, ObjectMeta


def pod(name: str, version: str = "1", *, namespace: str = "ns", uid: str = "", node: str = "") -> PodView:
    meta = ObjectMeta(name=name, namespace=namespace, resource_version=version, uid=uid or f"uid-{name}")
    return PodView(metadata=meta, spec=PodSpecView(node_name=node))


def node_of(item: PodView) -> Iterable[str]:
    return [item.spec.node_name] if item.spec.node_name else []


class Told:
    """Remembers the changes a store announces."""

    def __init__(self, store: Store[PodView]) -> None:
        self.changes: list[Change[PodView]] = []
        store.on_event(self.changes.append)

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(change.kind.value, change.key.name) for change in self.changes]


@pytest.fixture
def store() -> Store[PodView]:
    return Store("pods")


@pytest.fixture
def told(store: Store[PodView]) -> Told:
    return Told(store)


def test_put_adds_then_modifies(store: Store[PodView], told: Told) -> None:
    first, second = pod("a", "1"), pod("a", "2")
    store.put(first)
    store.put(second)
    assert store.get("ns", "a") is second
    assert told.changes == [
        Change(ChangeKind.ADDED, None, first),
        Change(ChangeKind.MODIFIED, first, second),
    ]


def test_a_known_version_changes_nothing(store: Store[PodView], told: Told) -> None:
    """A relist brings every object again; handlers must not hear of those that stayed the same."""
    store.put(pod("a", "1"))
    store.put(pod("a", "1"))
    assert told.kinds == [("ADDED", "a")]


def test_versions_are_not_ordered(store: Store[PodView]) -> None:
    store.put(pod("a", "9"))
    store.put(pod("a", "10"))
    store.put(pod("a", "2"))
    assert store.get("ns", "a").metadata.resource_version == "2"


def test_an_object_replaced_unseen_is_a_deletion_and_an_addition(store: Store[PodView], told: Told) -> None:
    store.put(pod("a", "1", uid="old"))
    store.put(pod("a", "2", uid="new"))
    assert told.kinds == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


def test_remove_tells_the_last_known_state(store: Store[PodView], told: Told) -> None:
    item = pod("a")
    store.put(item)
    store.remove(ObjectKey("ns", "a"))
    assert store.get("ns", "a") is None
    assert told.changes[-1] == Change(ChangeKind.DELETED, item, None)
    assert told.changes[-1].latest is item


def test_removing_what_is_not_there_says_nothing(store: Store[PodView], told: Told) -> None:
    store.remove(ObjectKey("ns", "a"))
    assert told.changes == []


def test_a_complete_list_tells_what_vanished(store: Store[PodView], told: Told) -> None:
    for name in "abc":
        store.put(pod(name))
    store.complete({ObjectKey("ns", "b")})
    assert [item.metadata.name for item in store.list()] == ["b"]
    assert told.kinds[3:] == [("DELETED", "a"), ("DELETED", "c")]


def test_a_list_of_one_namespace_says_nothing_about_others() -> None:
    store: Store[PodView] = Store("pods", ["x", "y"])
    store.put(pod("a", namespace="x"))
    store.put(pod("b", namespace="y"))
    store.complete(set(), "x")
    assert [item.metadata.key for item in store.list()] == [ObjectKey("y", "b")]


def test_synced_means_that_every_namespace_was_listed() -> None:
    store: Store[PodView] = Store("pods", ["x", "y"])
    store.complete(set(), "x")
    assert not store.synced.is_set()
    store.complete(set(), "y")
    assert store.synced.is_set()


def test_list_can_be_limited_to_a_namespace(store: Store[PodView]) -> None:
    store.put(pod("a", namespace="x"))
    store.put(pod("b", namespace="y"))
    assert [item.metadata.name for item in store.list("y")] == ["b"]
    assert len(store) == 2


def test_an_index_follows_changes(store: Store[PodView]) -> None:
    store.add_index("node", node_of)
    store.put(pod("a", "1", node="n1"))
    store.put(pod("b", "1", node="n1"))
    store.put(pod("a", "2", node="n2"))
    assert [item.metadata.name for item in store.by_index("node", "n1")] == ["b"]
    assert [item.metadata.name for item in store.by_index("node", "n2")] == ["a"]
    store.remove(ObjectKey("ns", "b"))
    assert store.by_index("node", "n1") == ()


def test_an_index_shows_the_newest_state(store: Store[PodView]) -> None:
    store.add_index("node", node_of)
    store.put(pod("a", "1", node="n1"))
    store.put(pod("a", "2", node="n1"))
    assert [item.metadata.resource_version for item in store.by_index("node", "n1")] == ["2"]


def test_an_index_added_late_knows_what_is_there(store: Store[PodView]) -> None:
    store.put(pod("a", node="n1"))
    store.add_index("node", node_of)
    assert len(store.by_index("node", "n1")) == 1


def test_an_index_name_is_taken_once(store: Store[PodView]) -> None:
    store.add_index("node", node_of)
    with pytest.raises(ValueError, match="already has an index 'node'"):
        store.add_index("node", node_of)


def test_an_index_function_that_fails_hides_its_object_only(store: Store[PodView]) -> None:
    def odd(item: PodView) -> list[str]:
        return [{"good": "yes"}[item.metadata.name]]

    store.add_index("odd", odd)
    store.put(pod("bad"))
    store.put(pod("good"))
    assert [item.metadata.name for item in store.by_index("odd", "yes")] == ["good"]
    assert store.get("ns", "bad") is not None


def test_a_handler_that_fails_keeps_no_other_from_learning(store: Store[PodView]) -> None:
    def broken(_: Change[PodView]) -> None:
        raise RuntimeError("boom")

    store.on_event(broken)
    told = Told(store)
    store.put(pod("a"))
    assert told.kinds == [("ADDED", "a")]


def test_a_handler_of_undecodable_objects_that_fails_keeps_no_other_from_learning(
    store: Store[PodView],
) -> None:
    def broken(_key: ObjectKey, _error: str) -> None:
        raise RuntimeError("boom")

    reports: list[ObjectKey] = []
    store.on_undecodable(broken)
    store.on_undecodable(lambda key, _: reports.append(key))
    store.mark_undecodable(ObjectKey("ns", "a"), "odd")
    assert reports == [ObjectKey("ns", "a")]


def test_handlers_see_the_store_as_it_is_after_the_change(store: Store[PodView]) -> None:
    store.add_index("node", node_of)
    seen: list[int] = []
    store.on_event(lambda _: seen.append(len(store.by_index("node", "n1"))))
    store.put(pod("a", node="n1"))
    store.remove(ObjectKey("ns", "a"))
    assert seen == [1, 0]


def test_an_undecodable_state_leaves_the_last_good_one(store: Store[PodView], told: Told) -> None:
    """To take it for a deletion would make the operator replace a pod that runs a job (I2)."""
    reports: list[tuple[ObjectKey, str]] = []
    store.on_undecodable(lambda key, error: reports.append((key, error)))
    store.put(pod("a", "1"))
    store.mark_undecodable(ObjectKey("ns", "a"), "expected str")
    assert store.get("ns", "a") is not None
    assert store.undecodable("ns", "a") == "expected str"
    assert reports == [(ObjectKey("ns", "a"), "expected str")]
    assert told.kinds == [("ADDED", "a")]


def test_a_good_state_ends_the_report(store: Store[PodView]) -> None:
    store.mark_undecodable(ObjectKey("ns", "a"), "expected str")
    store.put(pod("a", "2"))
    assert store.undecodable("ns", "a") is None


def test_what_was_never_readable_is_known_by_name_until_it_goes(store: Store[PodView]) -> None:
    store.put(pod("once", "1"))
    for name in ("once", "never", "other"):
        store.mark_undecodable(ObjectKey("ns", name), "odd")
    assert store.unknown("ns") == ["never", "other"]
    assert store.unknown("elsewhere") == []
    store.remove(ObjectKey("ns", "other"))
    store.complete({ObjectKey("ns", "once")})
    assert store.unknown("ns") == []
    assert store.undecodable("ns", "never") is None
    assert store.undecodable("ns", "once") == "odd"


class Model(RuleBasedStateMachine):
    """A store with an index against two dicts, and handlers that could rebuild it from what they hear."""

    names = st.sampled_from("abcde")

    def __init__(self) -> None:
        super().__init__()
        self.store: Store[PodView] = Store("pods")
        self.store.add_index("node", node_of)
        self.model: dict[ObjectKey, PodView] = {}
        self.heard: dict[ObjectKey, PodView] = {}
        self.version = 0
        self.store.on_event(self.hear)

    def hear(self, change: Change[PodView]) -> None:
        assert self.heard.get(change.key) is change.old, "a handler was told of another past"
        if change.new is None:
            del self.heard[change.key]
        else:
            self.heard[change.key] = change.new

    @rule(name=names, node=st.sampled_from(["", "n1", "n2"]), uid=st.sampled_from(["u", "v"]))
    def put(self, name: str, node: str, uid: str) -> None:
        self.version += 1
        item = pod(name, str(self.version), uid=uid, node=node)
        self.store.put(item)
        self.model[item.metadata.key] = item

    @rule(name=names)
    def remove(self, name: str) -> None:
        self.store.remove(ObjectKey("ns", name))
        self.model.pop(ObjectKey("ns", name), None)

    @rule(seen=st.sets(names))
    def relist(self, seen: set[str]) -> None:
        for name in seen:
            if (known := self.model.get(ObjectKey("ns", name))) is not None:
                self.store.put(known)
            else:
                self.put(name, "n1", "u")
        keys = {ObjectKey("ns", name) for name in seen}
        self.store.complete(keys)
        self.model = {key: item for key, item in self.model.items() if key in keys}

    @rule(name=names)
    def cannot_read(self, name: str) -> None:
        self.store.mark_undecodable(ObjectKey("ns", name), "odd")

    @invariant()
    def readers_see_the_model(self) -> None:
        assert {item.metadata.key: item for item in self.store.list()} == self.model

    @invariant()
    def handlers_know_the_same(self) -> None:
        assert self.heard == self.model

    @invariant()
    def the_index_is_what_a_scan_would_find(self) -> None:
        scan = Counter(item.spec.node_name for item in self.model.values() if item.spec.node_name)
        found = {node: self.store.by_index("node", node) for node in ("n1", "n2")}
        assert Counter({node: len(items) for node, items in found.items() if items}) == scan
        assert all(item is self.model[item.metadata.key] for items in found.values() for item in items)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
