"""D1: a model from a hub to a directory: throughput, CPU and memory, against what one would use otherwise."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..delivery.downloaders import Downloader, command, remove
from ..delivery.hub import BenchHub, start_hub
from ..delivery.timed import Timed, timed
from ..figures import median, paired_ratio, write_number
from ..lab import Lab
from ..verdicts import Finding, Verdict, at_most

MIB = 2**20
PEAK_LIMIT_MIB = 150
CPU_LIMIT = 1.1
WITHIN_SECONDS = 600.0
MEMORY_DISK = "/dev/shm"
"""Where models go, so that no disk is measured."""
COLUMNS = ("download", "MB/s", "seconds", "fastest to slowest", "CPU s a GB", "peak RSS MiB")


async def measure(lab: Lab) -> Finding:
    """Rounds in turn over one repository; then one large file, for the memory it takes."""
    shards, size = lab.pick(quick=2, full=4), lab.pick(quick=128, full=512) * MIB
    sizes = {f"model-{number}-of-{shards}.safetensors": size for number in range(1, shards + 1)}
    sizes |= {f"small-{number}.json": 2000 for number in range(8)}
    large = lab.pick(quick=1, full=4) * 1024 * MIB
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as folder:
        target = Path(folder) / "model"
        hub = await start_hub(lab, sizes)
        seen: dict[Downloader, list[Timed]] = {downloader: [] for downloader in Downloader}
        for _ in range(lab.pick(quick=3, full=5)):
            for downloader, rounds in seen.items():
                rounds.append(await download(lab, downloader, hub, target))
        big = await download(lab, Downloader.AGENT, await start_hub(lab, {"model.gguf": large}), target)
    finding = Finding(
        measure="D1",
        title=f"Download: {shards} files of {size // MIB} MiB and 8 small, then one of {large // MIB} MiB",
        columns=COLUMNS,
    )
    finding.rows = [row(name.value, rounds, hub.total) for name, rounds in seen.items()]
    finding.rows.append(row(f"{Downloader.AGENT}: {large // MIB} MiB in one file", [big], large))
    finding.verdicts = verdicts(seen, big)
    return finding


async def download(lab: Lab, downloader: Downloader, hub: BenchHub, target: Path) -> Timed:
    """One download into an empty place."""
    what = command(downloader, hub, target)
    log = lab.directory / f"{downloader.name.lower()}.log"
    try:
        return await timed(downloader.value, what.argv, env=what.env, log=log, within=WITHIN_SECONDS)
    finally:
        remove(target)


def row(name: str, rounds: list[Timed], total: int) -> tuple[str, ...]:
    """Medians of the rounds; the start of the process is part of all of them."""
    times = [one.seconds for one in rounds]
    seconds = median(times)
    cpu = median([one.cpu for one in rounds])
    peak = max(one.peak_bytes for one in rounds)
    return (
        name,
        write_number(total / seconds / 1e6),
        write_number(seconds),
        f"{write_number(min(times))} to {write_number(max(times))}",
        write_number(cpu / total * 1e9),
        write_number(peak / MIB),
    )


def verdicts(seen: dict[Downloader, list[Timed]], big: Timed) -> list[Verdict]:
    """The promises: as fast as snapshot_download though it verifies, for about its CPU, in bounded memory."""
    ours, theirs = seen[Downloader.AGENT], seen[Downloader.SNAPSHOT]
    slower = paired_ratio([one.seconds for one in ours], [one.seconds for one in theirs])
    cpu = paired_ratio([one.cpu for one in ours], [one.cpu for one in theirs])
    peak = max(one.peak_bytes for one in (*ours, big)) / MIB
    return [
        at_most("time <= snapshot_download's", slower, 1.0, f"{slower:.2f} x"),
        at_most(f"CPU <= {CPU_LIMIT} x snapshot_download's", cpu, CPU_LIMIT, f"{cpu:.2f} x"),
        at_most(f"peak RSS <= {PEAK_LIMIT_MIB} MiB at any size", peak, PEAK_LIMIT_MIB, f"{peak:.0f} MiB"),
    ]
