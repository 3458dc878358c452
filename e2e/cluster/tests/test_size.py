"""What `status` tells of the disk, of a cluster that is at work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from noctaya_cluster.host.cluster import size_on_disk


def test_every_file_below_a_folder_counts_once_and_links_are_not_followed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "a" / "b").mkdir(parents=True)
    empty = size_on_disk(state)
    (state / "a" / "b" / "file").write_bytes(b"x" * 50_000)
    (tmp_path / "elsewhere").write_bytes(b"x" * 500_000)
    (state / "link").symlink_to(tmp_path / "elsewhere")
    assert 50_000 <= size_on_disk(state) - empty < 100_000


def test_a_folder_that_goes_while_it_is_looked_at_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stays").mkdir()
    (tmp_path / "stays" / "file").write_bytes(b"x" * 50_000)
    (tmp_path / "goes").mkdir()
    scandir = os.scandir

    def scan(path: Any) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "goes":
            Path(path).rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    assert size_on_disk(tmp_path) >= 50_000
    assert not (tmp_path / "goes").exists()
