"""A control plane with the operator's and KEDA's kinds, for the time of one measure."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

from noctaya_api.crd import RESOURCES, render_crd
from noctaya_apiserver import ControlPlane, User, keda_crds

from ..lab import Lab
from .api import Api
from .requests import Requests, count_requests

OPERATOR = "operator"
SCALED_OBJECTS = "scaledobjects.keda.sh"
MASTERS = "system:masters"


@dataclass(slots=True)
class Cluster:
    """The API, and the operator's requests since the last time one asked for them."""

    plane: ControlPlane
    api: Api
    _told: int = 0

    def new_requests(self) -> Requests:
        """The operator's requests since the last call."""
        requests = self.plane.requests()
        fresh, self._told = requests[self._told :], len(requests)
        return count_requests(fresh, user=OPERATOR)


@contextlib.asynccontextmanager
async def running_cluster(lab: Lab) -> AsyncIterator[Cluster]:
    """Start it, stop it. Raises BuildError where there is neither Go nor a cache of what it builds."""
    keda = [crd for crd in keda_crds(report=_say) if crd["metadata"]["name"] == SCALED_OBJECTS]
    plane = ControlPlane(
        lab.directory / "cluster",
        users=[User(OPERATOR, (MASTERS,))],
        objects=[*map(render_crd, RESOURCES), *keda],
        report=_say,
    )
    with plane:
        async with Api(plane.server, token=plane.user().token, ca_file=plane.ca_file) as api:
            yield Cluster(plane, api)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
