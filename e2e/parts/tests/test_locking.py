"""Locks among processes: who uses something, and who is alone."""

from __future__ import annotations

from pathlib import Path

from noctaya_parts.locking import in_use, locked, shared, take_if_unused


def never() -> None:
    raise AssertionError("nobody else was there")


def test_several_use_something_and_nobody_is_alone_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with shared(file), shared(file):
        assert in_use(file)
        assert take_if_unused(file) is None
    assert not in_use(file)


def test_one_alone_keeps_the_others_out_until_it_is_over(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with locked(file, waiting=never) as handle:
        assert not handle.closed
        assert in_use(file)
    assert handle.closed
    taken = take_if_unused(file)
    assert taken is not None
    with taken:
        assert in_use(file)
    assert not in_use(file)


def test_a_lock_keeps_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.write_text("4711")
    with locked(file, waiting=never), file.open() as reader:
        assert reader.read() == "4711"
