"""The step in which the weights come to this machine."""

from pathlib import Path

from rich.console import Console

from noctaya_demo.step import Step
from noctaya_demo.weights import ensure_weights, models_directory


def fetch(console: Console) -> Path:
    """The weights are on this machine; returns the directory that stands for the claim `models`."""
    models = models_directory()
    with Step(console, "weights") as step:
        fetched = ensure_weights(models)
        step.say(f"SmolLM2-135M-Instruct, 98 MB, {'fetched' if fetched else 'already here'}, hash verified")
    return models
