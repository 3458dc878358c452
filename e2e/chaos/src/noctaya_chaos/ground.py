"""The cluster that is broken: brought up if it is not, with our images and chart, and taken away again."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from noctaya_cluster import choose_provider
from noctaya_scenarios.__main__ import is_up
from noctaya_scenarios.lab import open_lab, state_folder

from noctaya_chaos.field import Field

GATEWAYS: Final = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Of every command that needs a cluster."""
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument(
        "--as-installed", action="store_true", help="take cluster, images and release as they are"
    )


@contextmanager
def prepared(name: str, options: argparse.Namespace) -> Iterator[Field]:
    """A namespace of a cluster whose processes are on this machine. Raises ClusterError if there is none."""
    cluster = choose_provider("host", confirmed=False)  # of no other one are the nodes' processes here
    found = is_up(cluster)
    if not options.as_installed:
        cluster.start()
    try:
        with (
            open_lab(cluster, state_folder(), gateways=GATEWAYS, as_installed=options.as_installed) as lab,
            lab.scene(name) as scene,
        ):
            yield Field(lab, scene)
    finally:
        if not found and not options.keep:
            cluster.stop()
