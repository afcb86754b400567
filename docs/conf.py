"""How Sphinx builds the documentation: `make docs`."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

project = "coil"
author = "the coil maintainers"
version = metadata.version("coil")
extensions = ["myst_parser", "sphinxcontrib.mermaid", "docs._ext.reference"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# The fences that code hosts draw as pictures.
myst_fence_as_directive = ["mermaid"]
exclude_patterns = ["_build", "_ext", "STATUS.md"]
html_theme = "furo"
html_title = "coil: Slurm clusters on Kubernetes"
