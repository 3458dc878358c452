"""docs/getting-started.md as a newcomer follows it: the demo in one terminal, its commands in another."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest
from noctaya_apiserver import Child, wait_for
from noctaya_apiserver.ports import free_ports
from noctaya_docs.commands import commands_of
from noctaya_docs.stage import Shell
from noctaya_docs.table import WAYS
from noctaya_docs.ways import Place
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.scene import Scene

PAGE = Path("docs/getting-started.md")
DEMO = "./dev demo --cluster --keep --port 8080"
DEMO_SECONDS = 400
"""The demo's own story until it stays up; 50 s on an idle machine."""
END_SECONDS = 180


@pytest.mark.long
def test_the_commands_of_getting_started_work_in_their_order(lab: Lab, scene: Scene, tmp_path: Path) -> None:
    """`scene` is only there for its turn: nothing disturbs the cluster meanwhile."""
    kubeconfig = tmp_path / "kubeconfig"
    shutil.copyfile(lab.cluster.kubeconfig, kubeconfig)  # the page changes its context
    (port,) = free_ports(1)
    shell = Shell(tmp_path, kubeconfig=kubeconfig, names={"8080": str(port)})
    commands = [each.text for each in commands_of(PAGE) if WAYS[str(PAGE)][each.text].place is Place.CLUSTER]
    assert commands[0] == DEMO
    confirmed = ["--yes-use-this-cluster"] if lab.cluster.name == "existing" else []
    argv = [sys.executable, "-m", "noctaya_demo", "--cluster", lab.cluster.name, "--keep", f"--port={port}"]
    # A run that was started in the background ignores Ctrl-C, and what it starts would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    demo = Child("demo", [*argv, *confirmed], log=tmp_path / "demo.log")
    try:

        def stays_up() -> bool:
            demo.check_running()
            return "It stays up" in demo.output()

        wait_for(stays_up, within=DEMO_SECONDS, what="the demo stays up")
        for text in commands[1:]:
            shell.prove(text, WAYS[str(PAGE)][text])
    finally:
        demo.signal(signal.SIGINT)
        code = demo.wait(END_SECONDS)
    assert code == 0, demo.last_words(20)
