"""Sphinx extension: writes the reference pages before the documents are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from docs._ext.pages import flags, reports, resources, values

PAGES: dict[str, Callable[[], str]] = {
    "resources": resources.page,
    "values": values.page,
    "flags": flags.page,
    "metrics": flags.metrics_page,
    "reports": reports.page,
}


def write(folder: Path) -> None:
    """Write every page that changed."""
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path, text = folder / f"{name}.md", page()
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
