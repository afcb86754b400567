"""Panels and boards as Grafana reads them (dashboard schema 39)."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]

SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT = 8, 7
_COLUMNS = 24 // WIDTH


class Query(NamedTuple):
    """A PromQL expression, and the legend of its series."""

    expr: str
    legend: str = ""


class Panel(NamedTuple):
    """One graph, or with `stat` one number for each series."""

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    stat: bool = False
    about: str = ""


class Board(NamedTuple):
    """A board; `variables` maps a name to the PromQL of its choices."""

    uid: str
    title: str
    variables: dict[str, str]
    panels: tuple[Panel, ...]


def render(board: Board) -> Json:
    """The board as JSON members."""
    return {
        "uid": board.uid,
        "title": board.title,
        "tags": ["slurm", "coil"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_source(), *(_variable(*item) for item in board.variables.items())]},
        "panels": list(_panels(board.panels)),
    }


def _source() -> Json:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _variable(name: str, query: str) -> Json:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panels(panels: Sequence[Panel]) -> Iterator[Json]:
    for number, panel in enumerate(panels):
        x, y = number % _COLUMNS * WIDTH, number // _COLUMNS * HEIGHT
        yield {
            "id": number + 1,
            "title": panel.title,
            "description": panel.about,
            "type": "stat" if panel.stat else "timeseries",
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "targets": [
                _target(letter, query) for letter, query in zip("ABCDEFGH", panel.queries, strict=False)
            ],
        }


def _target(letter: str, query: Query) -> Json:
    return {
        "refId": letter,
        "datasource": SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
    }
