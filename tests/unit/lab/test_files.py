"""Files that daemons watch."""

from pathlib import Path

from lab import files


def test_the_same_text_again_touches_nothing(tmp_path: Path) -> None:
    """kube-proxy ends when its configuration file is written, and nobody would start it again."""
    path = tmp_path / "new" / "config.yaml"
    assert files.write(path, "a: 1\n")
    before = path.stat()

    assert not files.write(path, "a: 1\n")
    assert path.stat() == before

    assert files.write(path, "a: 2\n")
    assert path.read_text() == "a: 2\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_private_file_is_private_from_its_first_byte(tmp_path: Path) -> None:
    files.write(tmp_path / "key", "secret", private=True)

    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
