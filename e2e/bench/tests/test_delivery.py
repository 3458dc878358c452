"""D1's parts: processes are measured as they are, and every downloader ends with the hub's bytes."""

import sys
from pathlib import Path

import pytest
from noctaya_bench.children import ChildError
from noctaya_bench.delivery.downloaders import Downloader, command, remove
from noctaya_bench.delivery.hub import start_hub
from noctaya_bench.delivery.timed import Timed, timed
from noctaya_bench.lab import Lab
from noctaya_bench.measures.d1_prewarm import row, verdicts
from noctaya_bench.tools import Tools

MIB = 2**20
NO_TOOLS = Tools(nginx=None, wrk=None, go=None)
BUSY = """
import time
kept = bytearray(64 * 2**20)
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
"""


async def test_a_process_is_measured_from_start_to_end(tmp_path: Path) -> None:
    took = await timed("busy", [sys.executable, "-c", BUSY], env={}, log=tmp_path / "log", within=60)
    assert took.cpu >= 0.3
    assert took.seconds >= took.cpu * 0.5
    assert took.peak_bytes >= 64 * MIB


async def test_a_process_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    failing = [sys.executable, "-c", "import sys; sys.exit('no luck')"]
    with pytest.raises(ChildError, match=r"ended with 1: no luck"):
        await timed("failing", failing, env={}, log=tmp_path / "log", within=60)


async def test_a_process_that_does_not_end_is_ended(tmp_path: Path) -> None:
    hanging = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(ChildError, match="did not end within"):
        await timed("hanging", hanging, env={}, log=tmp_path / "log", within=0.2)


@pytest.mark.parametrize("downloader", list(Downloader))
async def test_every_downloader_fetches_the_whole_repository(tmp_path: Path, downloader: Downloader) -> None:
    sizes = {"model.safetensors": 3 * MIB + 1, "config.json": 20}
    target = tmp_path / "models" / "model"
    target.parent.mkdir()
    async with Lab(directory=tmp_path / "lab", tools=NO_TOOLS, quick=True) as lab:
        what = command(downloader, await start_hub(lab, sizes), target)
        await timed(downloader.value, what.argv, env=what.env, log=tmp_path / "log", within=100)
    assert {path: (target / path).stat().st_size for path in sizes} == sizes
    remove(target)
    assert list(target.parent.iterdir()) == []


def test_a_slower_or_larger_agent_misses_its_promises() -> None:
    fast, slow = Timed(1.0, 1.0, 100 * MIB), Timed(2.0, 2.0, 200 * MIB)
    good = verdicts({Downloader.AGENT: [fast], Downloader.SNAPSHOT: [slow]}, fast)
    bad = verdicts({Downloader.AGENT: [slow], Downloader.SNAPSHOT: [fast]}, slow)
    assert [one.reached for one in good] == [True, True, True]
    assert [one.reached for one in bad] == [False, False, False]


def test_a_row_gives_rates_by_the_bytes_of_the_repository() -> None:
    assert row("x", [Timed(2.0, 1.0, 50 * MIB)], 10**9) == (
        "x",
        "500",
        "2.00",
        "2.00 to 2.00",
        "1.00",
        "50.0",
    )
