"""Draws the README's picture: `redclf detect` on the example, as an SVG.

From the root: python examples/picture.py docs/detect.svg
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from redclf import Detector, load
from redclf.commands.detect import render

EXAMPLE = Path("examples/library_desk.json")


def main(target: str) -> None:
    """Write the picture to `target`."""
    console = Console(record=True, width=112, file=io.StringIO(), highlight=False)
    console.print(f"$ redclf detect examples/{EXAMPLE.name}\n", style="dim")
    detector = Detector()
    for trajectory in load(EXAMPLE):
        console.print(render(trajectory, detector.detect(trajectory)))
    svg = console.export_svg(title="redclf")
    # The fonts that rich names lie on the web; the picture needs none.
    svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.S)
    Path(target).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
