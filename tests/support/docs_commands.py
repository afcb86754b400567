"""The commands of the documentation: where they are, and which test runs them.

A command block is a fence named `sh`, all of it commands, or `console`, where commands follow "$ ".
"""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^( *)```(\S*)$")
PROGRAMS = "kubectl|helm|make|coil|scontrol|sinfo|squeue|sacctmgr|srun|sbatch|openssl|python|export|buildah"
COMMAND = re.compile(rf"^(?:[$#] )?(?:{PROGRAMS}) ", re.MULTILINE)

_SHARED = "the lab's operator serves other tests"
_TAKEOVER = f"{_SHARED}; tests/e2e/test_takeover.py changes operators"

ELSEWHERE = {
    ("accounting.md", "kubectl patch controller"): "a mismatch has to be made first;"
    " tests/slurm/test_accounting.py makes and mends one with daemons alone",
    ("admission.md", "kubectl apply -f gpu.yaml"): "shows a refusal; tests/apiserver/test_webhook_process.py",
    ("alerts.md", "helm upgrade slurm-operator"): f"{_SHARED}; tests/charts/test_monitoring.py renders it",
    ("charts.md", "helm install slurm-operator-crds"): "lab/install.py installs the three at each make up",
    ("charts.md", "helm install slurm charts/slurm"): "tests/apiserver/test_samples.py applies each sample",
    ("draining.md", "kubectl drain"): "the lab's machines serve other tests;"
    " tests/apiserver/test_nodeset_machines.py cordons, nothing evicts",
    ("hybrid.md", "kubectl create namespace slurm"): "needs a slurmctld outside; tests/e2e/test_hybrid.py",
    ("hybrid.md", "sinfo --Node"): "the same",
    ("images.md", "make images"): "make test-servers begins with it",
    ("images.md", "buildah build"): "needs Debian's registry; lab/images.py builds the same files",
    ("keys.md", "kubectl -n slurm patch secret"): "a new key restarts slurmctld; tests/e2e/test_token.py",
    ("lab.md", "python -m lab up"): "tests/lab/test_cycle.py",
    ("migrating.md", "helm rollback slurm-operator"): _TAKEOVER,
    ("migrating.md", "helm upgrade slurm-operator-crds"): _TAKEOVER,
    ("migrating.md", "kubectl annotate crd"): "the definitions serve other tests",
    ("quickstart.md", "make up"): "the lab of the tests is made by it (make e2e)",
    ("upgrading.md", "helm upgrade slurm-operator-crds"): _TAKEOVER,
}
"""Blocks that tests/e2e/test_docs.py does not run, by page and how they begin: why, and what does instead."""


@dataclass(frozen=True)
class Block:
    """One command block."""

    page: str
    line: int
    script: str

    @property
    def elsewhere(self) -> tuple[str, str] | None:
        """The entry of ELSEWHERE that is about this block."""
        found = [key for key in ELSEWHERE if key[0] == self.page and self.script.startswith(key[1])]
        return found[0] if found else None


def pages() -> list[Path]:
    """Every page of the documentation but decisions."""
    return sorted(DOCS.glob("*.md"))


def blocks(page: Path) -> list[Block]:
    """The command blocks of a page."""
    found = [(line, language, text) for line, language, text in fences(page) if language in ("sh", "console")]
    return [Block(page.name, line, _script(language, text)) for line, language, text in found]


def run_here(page: Path) -> list[Block]:
    """Those that tests/e2e/test_docs.py runs, in their order."""
    return [block for block in blocks(page) if block.elsewhere is None]


def fences(page: Path) -> list[tuple[int, str, str]]:
    """Line, language and text of all fences of a page."""
    found: list[tuple[int, str, str]] = []
    start, language, indent, inside = 0, "", 0, list[str]()
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if not start and fence:
            start, language, indent, inside = number, fence[2], len(fence[1]), []
        elif start and line.strip() == "```":
            found.append((start, language, "\n".join(inside)))
            start = 0
        elif start:
            inside.append(line[indent:])
    return found


def _script(language: str, text: str) -> str:
    if language == "sh":
        return text
    prompts = re.findall(r"^[$#] (.*)$", text, re.MULTILINE)
    return "\n".join(prompts)
