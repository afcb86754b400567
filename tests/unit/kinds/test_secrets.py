"""A Secret as content and as a child to compare."""

import msgspec
import pytest

from coil.build.patch import merge_patch
from coil.kinds.secrets import data_changed, manifest
from coil.kube.store import Change, ChangeKind
from coil.kube.views import SecretView

SECRET = msgspec.convert(
    {"metadata": {"name": "s", "namespace": "ns"}, "type": "Opaque", "data": {"k": b"\x00v"}}, SecretView
)


def test_as_a_child_it_equals_what_it_was_made_from() -> None:
    live = manifest(SECRET)
    wanted = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "ns"},
        "type": "Opaque",
        "stringData": {"k": "\x00v"},
    }
    assert merge_patch(msgspec.to_builtins(live), wanted) == {}
    wanted["stringData"] = {"k": "other"}
    assert merge_patch(msgspec.to_builtins(live), wanted) != {}
    assert manifest(None) is None


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (None, SECRET, True),
        (SECRET, None, True),
        (SECRET, msgspec.structs.replace(SECRET, immutable=True), False),
        (SECRET, msgspec.structs.replace(SECRET, data={}), True),
    ],
)
def test_only_data_counts(old: SecretView | None, new: SecretView | None, *, changed: bool) -> None:
    assert data_changed(Change(ChangeKind.MODIFIED, old, new)) is changed
