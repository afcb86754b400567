"""Configuration text: layout, what a user's options become, and that no value leaves its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.support.conftext import (
    ConfTextError,
    Section,
    merge_options,
    merged_section,
    parse_options,
    property_line,
    render,
    single_word,
)

MANDATORY = {
    "SlurmctldParameters": ["enable_configless", "reconfig_on_restart"],
    "AuthInfo": ["use_client_ids"],
    "AuthAltParameters": ["jwt_key=/etc/slurm/jwt.key", "jwks=/etc/slurm/jwks.json"],
}


def test_a_file_is_titled_sections_and_one_newline_at_the_end() -> None:
    text = render(
        [Section("GENERAL", ["A=1", "B=2"]), Section("EMPTY", []), Section("EXTRA CONFIG", ["x\n"])]
    )
    assert text == "#\n### GENERAL ###\nA=1\nB=2\n#\n### EXTRA CONFIG ###\nx\n\n"


def test_properties_have_no_blanks_or_one() -> None:
    assert property_line("MaxNodeCount", 1024) == "MaxNodeCount=1024"
    assert property_line("UsePAM", "yes", separator=" ") == "UsePAM yes"


@pytest.mark.parametrize(
    "value", ["a\nPrologSlurmctld=/tmp/own.sh", "a\rb", "a\\", "a\\  ", "a\x00b", "a\u2028b"]
)
def test_a_value_that_leaves_its_line_is_refused(value: str) -> None:
    """Field case INJ-01: refused even when admission let it through."""
    with pytest.raises(ConfTextError, match="State"):
        property_line("State", value)


@pytest.mark.parametrize("value", ["", "a b", "a,b", "a;b", "a#b", "a=b", "'a'", '"a"', "a\\b", "a\nb"])
def test_a_word_is_one_parameter_or_an_error(value: str) -> None:
    assert single_word("alba-1.x", "Key") == "alba-1.x"
    with pytest.raises(ConfTextError, match=r"^Key: "):
        single_word(value, "Key")


@given(st.text())
def test_a_property_is_one_line_or_an_error(value: str) -> None:
    try:
        line = property_line("K", value)
    except ConfTextError:
        return
    assert len(line.splitlines()) == 1
    assert not line.rstrip().endswith("\\")


@pytest.mark.parametrize(
    ("extra_conf", "lines"),
    [
        ("", []),
        ("MaxJobCount=5", []),
        (
            "SlurmctldParameters=Enable_Stepmgr,enable_configless",
            ["SlurmctldParameters=enable_configless,enable_stepmgr,reconfig_on_restart"],
        ),
        ("AuthInfo=cred_expire=30", ["AuthInfo=cred_expire=30,use_client_ids"]),
        (
            "AuthAltParameters=foo,JWKS=/x",
            ["AuthAltParameters=foo,jwks=/etc/slurm/jwks.json,jwt_key=/etc/slurm/jwt.key"],
        ),
        # Q8: blanks around commas no longer drop the operator's options.
        (
            "SlurmctldParameters = a , b",
            ["SlurmctldParameters=a,b,enable_configless,reconfig_on_restart"],
        ),
        # Q8b: a value keeps its case.
        ("authinfo=Socket=/Run/My.sock", ["AuthInfo=socket=/Run/My.sock,use_client_ids"]),
        # The last occurrence of a parameter and the first of an option count.
        ("AuthInfo=a\nAUTHINFO=ttl=1,TTL=2,,", ["AuthInfo=ttl=1,use_client_ids"]),
        (
            "AuthInfo=b\nSlurmctldParameters=a",
            ["AuthInfo=b,use_client_ids", "SlurmctldParameters=a,enable_configless,reconfig_on_restart"],
        ),
    ],
)
def test_the_users_option_lists_keep_the_operators_options(extra_conf: str, lines: list[str]) -> None:
    assert merged_section(extra_conf, MANDATORY) == Section("MERGED CONFIG", lines)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("A=1\r\nb = 2\r\n", {"a": "1", "b": "2"}),
        ("A=1 # comment\n# B=2\n", {"a": "1"}),
        ("A=1,\\\n  2\n", {"a": "1,2"}),
        ("A=1\\", {"a": "1"}),
        ("NodeName=n1 CPUs=4\n", {}),
        ("A=\n=b\nnothing\n", {}),
        ("A=b=c", {"a": "b=c"}),
    ],
)
def test_lines_are_read_as_slurm_reads_them(text: str, options: dict[str, str]) -> None:
    assert parse_options(text) == options


@given(st.lists(st.sampled_from(["a", "B", "c=1", "C=2", "use_client_ids", "x=/Y"]), max_size=6))
def test_merging_is_sorted_idempotent_and_loses_nothing_mandatory(options: list[str]) -> None:
    merged = merge_options(["use_client_ids"], ",".join(options))
    parts = merged.split(",")
    assert "use_client_ids" in parts
    assert parts == sorted(parts, key=str.encode)
    assert merge_options(["use_client_ids"], merged) == merged
