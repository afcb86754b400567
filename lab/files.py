"""Files that daemons read: replaced in one step, and only when they change."""

from pathlib import Path


def write(path: Path, text: str, *, private: bool = False) -> bool:
    """Write a file, making its folder, and tell whether it changed; a private one is its owner's only."""
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.new")
    scratch.unlink(missing_ok=True)
    scratch.touch(mode=0o600 if private else 0o644)
    scratch.write_text(text)
    scratch.rename(path)
    return True
