"""Writes the boards: `python -m dashboards FOLDER`."""

import json
import sys
from pathlib import Path

from dashboards.boards import BOARDS
from dashboards.panels import Board, render


def text(board: Board) -> str:
    """A board's file."""
    return json.dumps(render(board), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for board in BOARDS:
        (Path(sys.argv[1]) / f"{board.uid}.json").write_text(text(board))
