import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from noctaya_prewarm.digest import Digest, Kind
from noctaya_prewarm.intervals import Intervals
from noctaya_prewarm.journal import JournalWriter, header, read_journal

SIZE = 1000
FIRST = header("a/b.bin", size=SIZE, digest=Digest(kind=Kind.SHA256, value="ab" * 32), pin="c1")
WRITTEN = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE)).map(
        lambda pair: (pair[0], min(SIZE, sum(pair)))
    ),
    max_size=8,
)


def journal_of(stretches: list[tuple[int, int]]) -> bytes:
    return FIRST + b"".join(b"%d %d\n" % stretch for stretch in stretches)


@given(WRITTEN, st.data())
def test_m1_a_journal_cut_at_any_byte_lists_only_what_was_written(
    stretches: list[tuple[int, int]], data: st.DataObject
) -> None:
    whole = journal_of(stretches)
    cut = data.draw(st.integers(0, len(whole)))
    written = {number for start, end in stretches for number in range(start, end)}
    found = read_journal(whole[:cut], first=FIRST, size=SIZE, on_disk=SIZE)
    assert {number for start, end in found for number in range(start, end)} <= written
    complete = read_journal(whole, first=FIRST, size=SIZE, on_disk=SIZE)
    assert complete.total == len(written)


@given(st.binary(max_size=200))
def test_m1_nonsense_in_a_journal_is_never_more_than_the_file(noise: bytes) -> None:
    found = read_journal(FIRST + noise, first=FIRST, size=SIZE, on_disk=500)
    assert all(0 <= start < end <= 500 for start, end in found)


def test_m1_a_journal_of_another_version_counts_for_nothing() -> None:
    content = journal_of([(0, 10)])
    other = header("a/b.bin", size=SIZE, digest=Digest(kind=Kind.SHA256, value="cd" * 32), pin="c1")
    assert list(read_journal(content, first=other, size=SIZE, on_disk=SIZE)) == []


def test_the_same_content_of_another_commit_is_the_same_version() -> None:
    digest = Digest(kind=Kind.SHA256, value="ab" * 32)
    assert header("f", size=1, digest=digest, pin="one") == header("f", size=1, digest=digest, pin="two")
    assert header("f", size=1, digest=None, pin="one") != header("f", size=1, digest=None, pin="two")


def test_a_restarted_journal_holds_what_is_known(tmp_path: Path) -> None:
    handle = os.open(tmp_path / "j", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        writer, known = JournalWriter(handle), Intervals()
        known.add(0, 10)
        writer.restart(FIRST, known)
        writer.add(10, 20)
        content = (tmp_path / "j").read_bytes()
    finally:
        os.close(handle)
    assert list(read_journal(content, first=FIRST, size=SIZE, on_disk=SIZE)) == [(0, 20)]
