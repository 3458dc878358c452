"""The hub that everybody downloads from, as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from ..children import free_port
from ..lab import Lab

REPOSITORY = "bench/model"
_HASHING_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class BenchHub:
    """A running hub with one repository."""

    url: str
    sizes: Mapping[str, int]

    @property
    def total(self) -> int:
        """Bytes of the repository."""
        return sum(self.sizes.values())

    def file_url(self, path: str) -> str:
        """What curl asks for."""
        return f"{self.url}/{REPOSITORY}/resolve/main/{path}"


async def start_hub(lab: Lab, sizes: Mapping[str, int]) -> BenchHub:
    """A hub with files of these sizes, which has hashed them already."""
    port, cdn, s3 = free_port(), free_port(), free_port()
    argv = [sys.executable, "-m", "noctaya_model_hub", "--host", "127.0.0.1", "--port", str(port)]
    child = await lab.start(f"hub-{port}", [*argv, "--cdn-port", str(cdn), "--s3-port", str(s3)])
    await child.listening(port)
    hub = BenchHub(url=f"http://127.0.0.1:{port}", sizes=sizes)
    files = {path: {"size": size, "seed": number} for number, (path, size) in enumerate(sizes.items())}
    async with httpx.AsyncClient(base_url=hub.url, trust_env=False, timeout=_HASHING_SECONDS) as client:
        made = await client.put(f"/_hub/repositories/{REPOSITORY}", json={"files": files})
        made.raise_for_status()
        listed = await client.get(f"/api/models/{REPOSITORY}/tree/main?recursive=true")
        listed.raise_for_status()
    return hub
