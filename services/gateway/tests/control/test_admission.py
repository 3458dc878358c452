from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from noctaya_gateway.admission import Admission, Slot
from noctaya_gateway.errors import QueueFull


def test_g5_a_full_queue_refuses_with_429_and_retry_after_5() -> None:
    admission = Admission(1)
    admission.admit()

    with pytest.raises(QueueFull) as refusal:
        admission.admit()

    assert refusal.value.status == 429
    assert refusal.value.reason == "queue_full"
    assert (b"retry-after", b"5") in refusal.value.headers
    assert admission.pending == 1


def test_a_slot_is_freed_once_however_often_it_is_released() -> None:
    admission = Admission(2)
    first = admission.admit()
    admission.admit()

    first.release()
    first.release()

    assert admission.pending == 1


def test_every_change_of_pending_is_announced() -> None:
    admission = Admission(3)
    seen: list[int] = []
    admission.notify(lambda: seen.append(admission.pending))

    slots = [admission.admit(), admission.admit()]
    for slot in slots:
        slot.release()
        slot.release()

    assert seen == [1, 2, 1, 0]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least one slot"):
        Admission(limit)


class AdmissionMachine(RuleBasedStateMachine):
    """Against a model: a set of slots that are out."""

    slots = Bundle("slots")
    released = Bundle("released")
    LIMIT = 3

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0
        self.admission = Admission(self.LIMIT, on_change=self._changed)
        self.out: set[Slot] = set()
        self.expected_changes = 0

    def _changed(self) -> None:
        self.changes += 1

    @rule(target=slots)
    def admit(self) -> object:
        if len(self.out) == self.LIMIT:
            with pytest.raises(QueueFull):
                self.admission.admit()
            return None
        slot = self.admission.admit()
        self.out.add(slot)
        self.expected_changes += 1
        return slot

    @rule(target=released, slot=consumes(slots), times=st.integers(1, 3))
    def release(self, slot: Slot | None, times: int) -> Slot | None:
        if slot is not None:
            self.out.discard(slot)
            self.expected_changes += 1
            for _ in range(times):
                slot.release()
        return slot

    @rule(slot=released)
    def release_again(self, slot: Slot | None) -> None:
        if slot is not None:
            slot.release()

    @invariant()
    def pending_is_the_number_of_slots_out(self) -> None:
        assert self.admission.pending == len(self.out) <= self.LIMIT
        assert self.changes == self.expected_changes


TestAdmissionMachine = AdmissionMachine.TestCase
