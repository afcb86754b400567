"""A cluster that vanishes at once is not believed at once."""

from coil.slurm.loss import CONFIRM_S, LossGuard

ALL = {"a", "b", "c", "d"}


def test_a_few_nodes_may_go() -> None:
    guard = LossGuard()
    assert guard.doubt(ALL, 0) == ()
    assert guard.doubt({"a", "b", "c"}, 1) == ()
    assert guard.doubt({"a", "b"}, 2) == ()
    assert guard.doubt({"a"}, 3) == ()


def test_half_a_list_is_doubted_too() -> None:
    guard = LossGuard()
    guard.doubt(ALL, 0)
    assert guard.doubt({"a", "b"}, 1) == ("2 of 4 nodes vanished at once; believed after 30 s",)


def test_most_nodes_are_believed_gone_after_a_while() -> None:
    guard = LossGuard()
    guard.doubt(ALL, 0)
    assert guard.doubt({"a"}, 10) == ("3 of 4 nodes vanished at once; believed after 30 s",)
    assert guard.doubt(set(), 10 + CONFIRM_S - 1) == ("4 of 4 nodes vanished at once; believed after 30 s",)
    assert guard.doubt(set(), 10 + CONFIRM_S) == ()
    assert guard.doubt(ALL, 50) == ()


def test_nodes_that_come_back_were_never_gone() -> None:
    guard = LossGuard()
    guard.doubt(ALL, 0)
    guard.doubt(set(), 1)
    assert guard.doubt(ALL, 5) == ()
    assert guard.doubt(set(), 40) != ()


def test_an_empty_cluster_is_legal() -> None:
    guard = LossGuard()
    assert guard.doubt(set(), 0) == ()
    assert guard.doubt(ALL, 1) == ()
