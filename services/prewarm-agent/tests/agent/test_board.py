"""Who fetches what: every byte once, whatever order the workers come in."""

from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_prewarm.board import Board, Halted, Piece
from noctaya_prewarm.listing import RemoteFile
from noctaya_prewarm.part import Part
from noctaya_prewarm.run import Run
from noctaya_prewarm.tree import Tree

from .kit import settings


def files(*sizes: int) -> list[RemoteFile]:
    return [RemoteFile(path=PurePosixPath(f"f{n}"), size=size) for n, size in enumerate(sizes)]


def board(folder: Path, listed: list[RemoteFile], *, piece_size: int = 10) -> Board:
    run, tree = Run(settings()), Tree(folder)
    return Board(listed, piece_size=piece_size, open_part=lambda file: Part(run, tree, str(file.path), file))


def write(piece: Piece) -> None:
    if piece.start < piece.end:
        piece.part.put(piece.start, bytes(piece.end - piece.start))


@given(sizes=st.lists(st.integers(0, 45), min_size=1, max_size=5), data=st.data())
def test_every_byte_is_handed_out_once_to_however_many_workers(sizes: list[int], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        work = board(Path(folder), files(*sizes))
        held: list[Piece] = []
        got: dict[str, list[tuple[int, int]]] = {}
        closed = 0
        while closed < len(sizes):
            # A worker without a piece would wait; so one is only taken while some byte is not handed out.
            handed = sum(end - start for pieces in got.values() for start, end in pieces)
            fresh = len(got) < len(sizes)
            if (fresh or handed < sum(sizes)) and (not held or data.draw(st.booleans())):
                last = data.draw(st.sampled_from(held)).task if held else None
                piece = work.take(last)
                assert piece is not None
                held.append(piece)
                got.setdefault(str(piece.task.file.path), []).append((piece.start, piece.end))
                continue
            piece = held.pop(data.draw(st.integers(0, len(held) - 1)))
            write(piece)
            if work.done(piece):
                work.close(piece.task)
                closed += 1
        assert work.take(None) is None
        for file in files(*sizes):
            bytes_of = [n for start, end in got[str(file.path)] for n in range(start, end)]
            assert sorted(bytes_of) == list(range(file.size))
        work.close_parts()


def test_a_worker_stays_with_its_file_and_others_take_other_files(tmp_path: Path) -> None:
    work = board(tmp_path, files(30, 20))
    one = work.take(None)
    other = work.take(None)
    assert one is not None
    assert other is not None
    assert (one.task.file.size, other.task.file.size) == (30, 20)
    write(one)
    assert work.done(one) is False
    again = work.take(one.task)
    assert again is not None
    assert (again.task, again.start) == (one.task, 10)
    work.close_parts()


def test_more_workers_than_files_share_a_file(tmp_path: Path) -> None:
    work = board(tmp_path, files(30))
    pieces = [work.take(None) for _ in range(3)]
    assert [(piece.start, piece.end) for piece in pieces if piece] == [(0, 10), (10, 20), (20, 30)]
    work.close_parts()


def test_a_small_file_is_asked_for_whole(tmp_path: Path) -> None:
    work = board(tmp_path, files(10))
    piece = work.take(None)
    assert piece is not None
    assert piece.ranged is False
    work.close_parts()


def test_what_an_earlier_run_left_is_not_handed_out(tmp_path: Path) -> None:
    [file] = files(30)
    part = Part(Run(settings()), Tree(tmp_path), "f0", file)
    with part.writer() as writer:
        writer.put(5, bytes(20))
    part.close()
    work = board(tmp_path, [file])
    pieces = [work.take(None) for _ in range(2)]
    assert [(piece.start, piece.end) for piece in pieces if piece] == [(0, 5), (25, 30)]
    work.close_parts()


def test_a_file_without_ranges_is_handed_out_whole_and_ends_once(tmp_path: Path) -> None:
    work = board(tmp_path, files(30))
    first, second = work.take(None), work.take(None)
    assert first is not None
    assert second is not None
    for piece in (first, second):
        work.fetch_whole(piece.task)
    assert work.done(first) is False
    whole = work.take(first.task)
    assert whole is not None
    assert (whole.start, whole.end, whole.ranged) == (0, 30, False)
    write(whole)
    assert work.done(whole) is False
    assert work.done(second) is True
    work.close(whole.task)
    assert work.take(None) is None
    work.close_parts()


def test_a_restarted_file_is_handed_out_again(tmp_path: Path) -> None:
    work = board(tmp_path, files(10))
    piece = work.take(None)
    assert piece is not None
    write(piece)
    assert work.done(piece) is True
    piece.part.discard()
    work.restart(piece.task)
    again = work.take(None)
    assert again is not None
    assert (again.start, again.end) == (0, 10)
    work.close_parts()


def test_after_a_failure_nobody_gets_work(tmp_path: Path) -> None:
    work = board(tmp_path, files(10))
    error = RuntimeError("first")
    work.fail(error)
    work.fail(RuntimeError("second"))
    assert work.error is error
    with pytest.raises(Halted):
        work.take(None)
