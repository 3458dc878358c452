"""Asking gateways for the ids and moments of an activation, beside the passes and never in their way.

The gateways of a service are asked at the addresses of their Pods while an activation goes on and until the
first byte of it is known, each time a little later while nothing new is heard. What they tell is kept for the
next pass, which it calls for. One that can't be reached - the operator runs outside the cluster, a network
policy - costs nothing but what only it knows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from noctaya_api import names
from noctaya_api.gateway_activations import (
    ListedActivation,
    NotAnActivationList,
    parse_activation_list,
)
from noctaya_api.v1alpha1.llmservice_status import ActivationOutcome, ActivationRecord

from noctaya_operator.gateway_activations import ACCURACY, flattened
from noctaya_operator.kube.objects import Key, Object
from noctaya_operator.progress_poller import Fetch, Unanswered

log = logging.getLogger(__name__)

SHORTEST: Final = 1.0
"""Seconds between questions after something new was heard."""
LONGEST: Final = 15.0
"""The same after a while of silence."""
WATCHFUL: Final = 2.0
"""The same while activations are known to fail: who begins one is to be told before long."""
SLOWER: Final = 1.5
"""How much longer each wait is than the one before."""
AFTER_READY: Final = 120.0
"""Seconds after readiness in which a first byte is waited for; a replica that no request woke has none."""
CONCURRENCY: Final = 8
"""Questions at one time, over all services."""


@dataclass
class _Target:
    urls: tuple[str, ...]
    going_on: bool
    longest: float = LONGEST
    task: asyncio.Task[None] | None = None
    told: dict[str, tuple[ListedActivation, ...]] = field(default_factory=dict)
    behind: dict[str, timedelta] = field(default_factory=dict)
    """How far clocks that are wrong are behind ours; kept, so that the same moments stay the same."""


class ActivationPoller:
    """Follows the activations of services at their gateways.

    Args:
        fetch: gets a URL; raises `Unanswered`.
        now: wall clock.
    """

    def __init__(self, fetch: Fetch, *, now: Callable[[], datetime]) -> None:
        self._fetch = fetch
        self._now = now
        self._targets: dict[Key, _Target] = {}
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._news: Callable[[Key], None] = lambda service: None

    def subscribe(self, news: Callable[[Key], None]) -> None:
        """Call `news(service)` whenever a gateway said something new."""
        self._news = news

    def told(self, service: Key) -> tuple[ListedActivation, ...]:
        """What the gateways of a service said last."""
        target = self._targets.get(service)
        return flattened(target.told) if target is not None else ()

    def parent_of(self, service: Key, activation_id: str) -> str:
        """The `traceparent` of the request that began an activation; empty when it was not traced."""
        named = (each.traceparent for each in self.told(service) if each.id == activation_id)
        return next(named, None) or ""

    def going_on(self, service: Key, address: str) -> str | None:
        """The id of the activation that goes on at the gateway of an address, as it said last."""
        target = self._targets.get(service)
        said = target.told.get(activations_url(address), ()) if target is not None else ()
        return next((each.id for each in said if each.ended is None), None)

    def follow(
        self,
        service: Key,
        record: ActivationRecord | None,
        addresses: Sequence[str],
        *,
        watchful: bool = False,
    ) -> None:
        """Ask the gateways at `addresses` as long as there is something to hear of an activation; often all
        the time if `watchful`.
        """
        if record is None or not addresses or not self._wanted(record):
            self.forget(service)
            return
        urls = tuple(sorted(map(activations_url, addresses)))
        going_on = record.outcome is ActivationOutcome.IN_PROGRESS
        target = self._targets.get(service)
        longest = WATCHFUL if watchful else LONGEST
        if target is not None and (target.urls, target.going_on) == (urls, going_on):
            target.longest = longest
            return
        fresh = _Target(urls, going_on, longest)
        if target is not None:
            fresh.told = {url: said for url, said in target.told.items() if url in urls}
            fresh.behind = target.behind
        self.forget(service)
        self._targets[service] = fresh
        fresh.task = asyncio.create_task(self._ask(service, fresh), name=f"activation of {service}")

    def forget(self, service: Key) -> None:
        """Ask no more."""
        target = self._targets.pop(service, None)
        if target is not None and target.task is not None:
            target.task.cancel()

    async def close(self) -> None:
        """Ask nobody any more."""
        tasks = [target.task for target in self._targets.values() if target.task is not None]
        for service in list(self._targets):
            self.forget(service)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _wanted(self, record: ActivationRecord) -> bool:
        if record.ended is not None or record.first_byte is not None:
            return False
        if record.ready is None or record.outcome is ActivationOutcome.IN_PROGRESS:
            return True
        return (self._now() - datetime.fromisoformat(record.ready)).total_seconds() < AFTER_READY

    async def _ask(self, service: Key, target: _Target) -> None:
        wait = SHORTEST
        asked = 0.0
        while target.going_on or asked < AFTER_READY:
            answers = await asyncio.gather(*(self._one(url, target) for url in target.urls))
            heard = {url: said for url, said in zip(target.urls, answers, strict=True) if said is not None}
            if target.told | heard != target.told:
                target.told |= heard
                wait = SHORTEST
                self._news(service)
            await asyncio.sleep(wait)
            asked += wait
            wait = min(target.longest, wait * SLOWER)

    async def _one(self, url: str, target: _Target) -> tuple[ListedActivation, ...] | None:
        try:
            async with self._slots:
                answer = parse_activation_list(await self._fetch(url))
            behind = self._now() - answer.now
            if abs(behind - target.behind.get(url, timedelta(0))) > ACCURACY:
                target.behind[url] = behind
            if not (by := target.behind.get(url)):
                return tuple(answer.activations)
            return tuple(each.moved(by) for each in answer.activations)
        # OverflowError: a clock beyond the calendar's ends.
        except (Unanswered, NotAnActivationList, OverflowError) as error:
            log.debug("%s tells nothing of activations: %s", url, error)
            return None


def addresses_of(gateways: Iterable[Object]) -> list[str]:
    """Where Pods of gateways that run can be asked."""
    return [address for address in map(address_of, gateways) if address]


def address_of(gateway: Object) -> str:
    """Where the Pod of a gateway can be asked; empty while it does not run."""
    status = gateway.get("status") or {}
    return str(status.get("podIP") or "") if status.get("phase") == "Running" else ""


def activations_url(address: str) -> str:
    """Where the gateway at an address of IPv4 or IPv6 tells of its activations."""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{names.GATEWAY_PORT}{names.PATH_ACTIVATIONS}"
