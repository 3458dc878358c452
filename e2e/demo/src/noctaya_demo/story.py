"""The demo from the first line to the last."""

import tempfile
from pathlib import Path

from rich.console import Console

from noctaya_demo.act import Act
from noctaya_demo.fetching import fetch
from noctaya_demo.stack import Stack
from noctaya_demo.step import Step, StepFailed

START_WITHIN = 60.0


def tell(console: Console, *, manifests: Path, port: int, keep: bool, picture: Path | None = None) -> None:
    """Everything, in order; raises when a step doesn't hold. Nothing is left running either way."""
    models = fetch(console)
    with tempfile.TemporaryDirectory(prefix="noctaya-demo-") as folder:
        stack = Stack(manifests, models=models, directory=Path(folder), port=port)
        try:
            with Step(console, "noctaya run") as step:
                url = str(stack.wait_for("service_started", within=START_WITHIN).details["url"])
                step.say(f"examples/{manifests.name} at {url}")
            act = Act(console, stack, url)
            act.asleep()
            act.cold_start()
            act.warm_answer()
            act.compare_latency(stack.backend_port())
            act.burst()
            act.back_to_zero()
            act.draw()
            if picture is not None:
                act.save_picture(picture)
            if keep:
                act.stay()
        except BaseException:
            stack.stop()
            raise
        with Step(console, "stopped") as step:
            left = stack.stop()
            if left:
                raise StepFailed(f"processes are left: {', '.join(str(process.pid) for process in left)}")
            step.say("no process is left")
