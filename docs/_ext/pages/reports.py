"""Every condition and event, found in the code that reports them."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from coil import kinds
from docs._ext.pages import code, table

ROOM = Path(inspect.getfile(kinds)).parent
Row = tuple[str, ...]
_CONDITION = 5
_RECORD = 5


def page() -> str:
    """The page, in Markdown."""
    calls = list(_calls())
    conditions = sorted({row for room, call in calls for row in _conditions(room, call)})
    failures = sorted({row for room, call in calls for row in _failures(room, call)})
    events = sorted({row for _, call in calls for row in _events(call)})
    return "\n".join(
        [
            "# Conditions and events\n",
            "## Conditions\n",
            table(["kind", "condition", "status", "reason", "message"], conditions),
            "## Reasons of `Reconciled` False\n",
            table(["kind", "reason", "message"], failures),
            "## Events\n",
            table(["reason", "type", "note"], events),
        ]
    )


def _calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call below `coil.kinds`, with the room it stands in and names of constants put in."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(ROOM.rglob("*.py"))}
    everywhere = {name: value for tree in trees.values() for name, value in _constants(tree)}
    for path, tree in trees.items():
        room = path.parent.name if path.parent != ROOM else "all"
        for node in ast.walk(_Known({**everywhere, **dict(_constants(tree))}).visit(tree)):
            if isinstance(node, ast.Call):
                yield room, node


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id.isupper():
                    yield target.id, node.value


class _Known(ast.NodeTransformer):
    """Puts the values of constants where their names stand."""

    def __init__(self, values: dict[str, ast.Constant]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node)


def _conditions(room: str, call: ast.Call) -> Iterator[Row]:
    if _name(call) == "condition" and len(call.args) == _CONDITION:
        _, kind, status, reason, message = map(_text, call.args)
        yield room, code(kind), status, code(reason), message


def _failures(room: str, call: ast.Call) -> Iterator[Row]:
    members = {word.arg: _text(word.value) for word in call.keywords}
    if _name(call) == "Failed" and {"reason", "message"} <= members.keys():
        yield room, code(members["reason"]), members["message"]


def _events(call: ast.Call) -> Iterator[Row]:
    members = {word.arg: _text(word.value) for word in call.keywords}
    if _name(call) in {"_record", "record"} and len(call.args) >= _RECORD:
        _, kind, reason, _, note = map(_text, call.args[:_RECORD])
        yield code(reason), kind, note
    elif _name(call) == "Notice" and {"type", "reason", "note"} <= members.keys():
        yield code(members["reason"]), members["type"], members["note"]


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _text(node: ast.expr) -> str:
    """A text as people will see it; what is only known at run time stands in braces."""
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.JoinedStr(values=values):
            return "".join(map(_text, values))
        case ast.FormattedValue(value=value):
            return _text(value)
        case _:
            return f"{{{ast.unparse(node)}}}"
