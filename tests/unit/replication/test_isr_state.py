"""IsrState: what counts while the controller decides."""

from __future__ import annotations

import pytest

from tailrace.replication.isr.isr_state import IsrProposal, IsrState

JOIN = IsrProposal(1, 0, 0, ((1, -1), (2, -1), (3, -1)), joining=frozenset({3}))
LEAVE = IsrProposal(1, 0, 0, ((1, -1),), leaving=frozenset({2}))


def test_a_joining_and_a_leaving_replica_are_both_in_the_maximal_isr() -> None:
    isr = IsrState((1, 2))
    isr.propose(JOIN)
    assert (isr.committed, isr.maximal) == ({1, 2}, {1, 2, 3})
    isr.withdraw()
    assert (isr.committed, isr.maximal, isr.pending) == ({1, 2}, {1, 2}, None)
    isr.propose(LEAVE)
    assert (isr.committed, isr.maximal) == ({1, 2}, {1, 2})
    isr.commit((1,))
    assert (isr.committed, isr.maximal, isr.pending) == ({1}, {1}, None)


def test_a_second_proposal_waits_for_the_first_to_be_decided() -> None:
    isr = IsrState((1, 2))
    isr.propose(JOIN)
    with pytest.raises(AssertionError):
        isr.propose(LEAVE)
    assert "maximal=[1, 2, 3]" in repr(isr)
