"""Who downloads: our agent, huggingface_hub's own snapshot_download, and curl, which verifies nothing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from .hub import REPOSITORY, BenchHub

CONNECTIONS = 8
"""Each has as many: the agent's default, snapshot_download's default, curl's --parallel-max."""
_SNAPSHOT = (
    "import sys; from huggingface_hub import snapshot_download; "
    f"snapshot_download({REPOSITORY!r}, local_dir=sys.argv[1], max_workers={CONNECTIONS})"
)


class Downloader(StrEnum):
    """The rows of the table."""

    AGENT = "noctaya-prewarm, verified and synced"
    SNAPSHOT = "snapshot_download (Xet off), not verified"
    CURL = "curl --parallel, not verified"


@dataclass(frozen=True, slots=True)
class Command:
    """One process to run."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


def command(downloader: Downloader, hub: BenchHub, target: Path) -> Command:
    """How `downloader` fetches the hub's repository into `target`, which doesn't exist yet."""
    if downloader is Downloader.AGENT:
        script = Path(sys.executable).with_name("noctaya-prewarm")
        argv = [str(script), "download", "--source", f"hf://{REPOSITORY}", "--target", str(target)]
        return Command(argv, {"HF_ENDPOINT": hub.url, "NOCTAYA_PREWARM_LISTEN_ADDR": "127.0.0.1:0"})
    if downloader is Downloader.SNAPSHOT:
        env = {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(target.with_name("hf-home")),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        return Command([sys.executable, "-c", _SNAPSHOT, str(target)], env)
    argv = ["curl", "-sSfL", "--create-dirs", "--parallel", "--parallel-max", str(CONNECTIONS)]
    for path in hub.sizes:
        argv += ["-o", str(target / path), hub.file_url(path)]
    return Command(argv)


def remove(target: Path) -> None:
    """Make room for the next one."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.rmtree(target.with_name("hf-home"), ignore_errors=True)
