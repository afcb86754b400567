"""The picture of the rooms in docs/architecture.md is what import-linter finds in the code."""

import re
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def arrows() -> list[str]:
    """Which room imports which, as `import-linter drawgraph coil` draws it."""
    graph = grimp.build_graph("coil")
    rooms = sorted(graph.find_children("coil"))
    return [
        f"  {importer.removeprefix('coil.')} --> {imported.removeprefix('coil.')}"
        for importer in rooms
        for imported in rooms
        if importer != imported
        and graph.direct_import_exists(importer=importer, imported=imported, as_packages=True)
    ]


def test_the_picture_shows_every_arrow_and_no_other() -> None:
    picture = re.search(r"```mermaid\nflowchart TD\n(.*?)\n```", PAGE.read_text(), re.DOTALL)
    assert picture is not None
    assert picture[1].splitlines() == arrows()
