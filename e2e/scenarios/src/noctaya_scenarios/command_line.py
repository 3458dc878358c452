"""The `noctaya` command, as a person calls it against the cluster of the scenarios."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

from noctaya_scenarios.lab import Lab

SECONDS: Final = 240.0
"""For a command that waits for the cluster."""


def noctaya(lab: Lab, *arguments: str) -> tuple[int, Any]:
    """Exit code and JSON of a command. AssertionError when it printed none."""
    command = [sys.executable, "-m", "noctaya_cli", *arguments, "--output=json"]
    kubeconfig = f"--kubeconfig={lab.cluster.kubeconfig}"
    done = subprocess.run(
        [*command, kubeconfig], capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.stdout, f"{arguments} ended with {done.returncode}: {done.stderr}"
    return done.returncode, json.loads(done.stdout)
