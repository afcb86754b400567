"""Draw what `make autoscaling` recorded: for each round, jobs, replicas and nodes over time.

`python -m benchmarks.autoscaling autoscaling.json docs/autoscaling.png`
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT, LEFT, TOP, GAP = 1100, 210, 60, 40, 40
COLOURS = {
    "jobs pending": "#d95f02",
    "nodes wanted": "#7570b3",
    "replicas": "#1b9e77",
    "workers": "#66a61e",
    "nodes in Slurm": "#a6761d",
    "nodes at work": "#1f78b4",
}
_INK, _GRID, _PAPER = "#333333", "#dddddd", "#ffffff"
_FONT = ImageFont.load_default(14)


class Plot:
    """One round: a title, a grid of seconds and counts, a line of steps for each series."""

    def __init__(self, draw: ImageDraw.ImageDraw, top: int, told: dict[str, Any]) -> None:
        self._draw = draw
        self._top = top
        self._told = told
        series: dict[str, list[tuple[float, float]]] = told["series"]
        self._seconds = max(at for points in series.values() for at, _ in points)
        self._most = max(value for points in series.values() for _, value in points)

    def paint(self) -> None:
        """Everything."""
        self._draw.text((LEFT, self._top - 22), self._told["title"], _INK, _FONT)
        for second in range(0, int(self._seconds) + 1, 30):
            x, _ = self._place(second, 0)
            self._draw.line([(x, self._top), (x, self._top + HEIGHT)], _GRID)
            self._draw.text((x, self._top + HEIGHT + 4), f"{second} s", _INK, _FONT)
        for count in range(0, int(self._most) + 1, 2):
            _, y = self._place(0, count)
            self._draw.line([(LEFT, y), (WIDTH - 20, y)], _GRID)
            self._draw.text((LEFT - 24, y - 8), str(count), _INK, _FONT)
        for name, points in self._told["series"].items():
            self._draw.line(self._steps(points, list(COLOURS).index(name)), COLOURS[name], 2)

    def _steps(self, points: Sequence[Sequence[float]], number: int) -> list[tuple[float, float]]:
        """A count keeps its value until the next one; lines on each other are moved apart by a little."""
        line: list[tuple[float, float]] = []
        for at, value in points:
            x, y = self._place(at, value)
            y -= number * 2
            line += [*([(x, line[-1][1])] if line else []), (x, y)]
        return line

    def _place(self, second: float, value: float) -> tuple[float, float]:
        across = (WIDTH - 20 - LEFT) * second / self._seconds
        return LEFT + across, self._top + HEIGHT * (1 - value / self._most)


def main() -> None:
    """Read the record, write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", type=Path)
    parser.add_argument("picture", type=Path)
    chosen = parser.parse_args()
    rounds = json.loads(chosen.record.read_text())
    image = Image.new("RGB", (WIDTH, 30 + len(rounds) * (HEIGHT + TOP + GAP)), _PAPER)
    draw = ImageDraw.Draw(image)
    for number, (name, colour) in enumerate(COLOURS.items()):
        draw.text((LEFT + number * 160, 6), name, colour, _FONT)
    for number, told in enumerate(rounds):
        Plot(draw, 30 + TOP + number * (HEIGHT + TOP + GAP), told).paint()
    image.quantize(32).save(chosen.picture, optimize=True)


if __name__ == "__main__":
    main()
