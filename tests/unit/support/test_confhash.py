"""Claims about the hash by which slurmctld names its configuration; tests/slurm compares with a real one."""

from coil.support.confhash import conf_hash


def test_known_values() -> None:
    assert conf_hash("") == 0
    # One byte: eight steps over its value in the second byte.
    assert conf_hash("a") == 0x677C87


def test_every_byte_counts_comments_and_their_place_too() -> None:
    texts = ["A=1\n", "A=1\n# x\n", "A=1\n# y\n", "# x\nA=1\n", "A=1\n\n", "A=1 \n", "A=ä\n"]
    assert len({conf_hash(text) for text in texts}) == len(texts)


def test_included_files_count_where_they_are_included() -> None:
    inner, longer = {"more.conf": "B=2\n"}, {"more.conf": "B=2\nC=3\n"}
    include = "A=1\nInclude /etc/slurm/more.conf\n"
    assert conf_hash(f"{include}C=3\n", inner) == conf_hash(include, longer) != conf_hash(include, inner)
    assert conf_hash("# include more.conf\n", inner) == conf_hash("# include more.conf\n")


def test_what_cannot_be_known_is_not_guessed() -> None:
    assert conf_hash("include elsewhere.conf\n", {"more.conf": ""}) is None
    assert conf_hash("include loop.conf\n", {"loop.conf": "include loop.conf\n"}) is None
