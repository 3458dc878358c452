"""One active process among several, by a Lease.

Numbers and rules are client-go's: a lease of 15 s, renewed every 2 s, given up by its holder when no renewal
went through for 10 s. Another's lease counts as expired when it was not seen to change for its duration on
our own monotonic clock; the times written in it are for people. Beyond client-go a candidate watches the
Lease, so a released one is taken within milliseconds, and the work under the lease has ended before it is
released.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, NamedTuple

from noctaya_operator.kube.client import KubeClient
from noctaya_operator.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from noctaya_operator.kube.objects import Key, Object, resource_version_of
from noctaya_operator.kube.resources import LEASES

log = logging.getLogger(__name__)


MOMENT = 0.001
"""Seconds; a timer may fire a clock tick early, so what is waited for is a little later."""


class LeadershipLost(Exception):
    """The lease could not be renewed in time, or another holds it."""


class LeaseTiming(NamedTuple):
    """Seconds."""

    duration: float = 15.0
    """After which others may take a lease that does not change."""
    renew_deadline: float = 10.0
    """After which a holder without a successful renewal stops."""
    retry: float = 2.0
    """Between renewals, and between attempts to get the lease."""


class LeaderElector:
    """Takes part in the election of one Lease.

    Args:
        client: the API server.
        lease: where the Lease is; it is created when missing.
        identity: who we are, unique for each process.
        timing: see `LeaseTiming`.
        now: wall clock, for the times written into the Lease.
        rng: randomness for jitter.
        field_manager: name the writes are recorded under.
        on_change: called with True when leadership begins and False when it ends.
    """

    def __init__(
        self,
        client: KubeClient,
        lease: Key,
        identity: str,
        *,
        timing: LeaseTiming | None = None,
        now: Callable[[], datetime] | None = None,
        rng: random.Random | None = None,
        field_manager: str = "leader-election",
        on_change: Callable[[bool], None] | None = None,
    ) -> None:
        self._client = client
        self._key = lease
        self._identity = identity
        self._timing = timing or LeaseTiming()
        self._now = now or (lambda: datetime.now(UTC))
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._field_manager = field_manager
        self._on_change = on_change or (lambda leading: None)
        self._lease: Object = {}
        self._changed_at = float("-inf")
        self._leading = False

    @property
    def leading(self) -> bool:
        """Whether we hold the lease now."""
        return self._leading

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen; empty for nobody."""
        return str(_spec(self._lease).get("holderIdentity") or "")

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for the lease, then run `lead` for as long as it is ours.

        `lead` is cancelled, and waited for, when leadership is lost or this is cancelled; only then is the
        lease released. Returns, and releases, when `lead` returns.

        Raises:
            LeadershipLost: the process must not go on as leader; run again or exit.
        """
        renewed_at = await self._acquire()
        self._set_leading(True)
        log.info("leading as %s", self._identity)
        lost = False
        work = asyncio.create_task(lead(), name="leader")
        try:
            await self._renew_while(work, renewed_at)
        except LeadershipLost:
            lost = True
            raise
        finally:
            await _end(work)
            self._set_leading(False)
            if not lost:
                await self._release()
        await work

    def _set_leading(self, leading: bool) -> None:
        self._leading = leading
        self._on_change(leading)

    # Getting it

    async def _acquire(self) -> float:
        """Returns when the lease is ours, with the time before the write that made it so."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                async with asyncio.timeout(self._timing.renew_deadline):
                    taken = await self._try_to_take()
                if taken:
                    return began
                await self._wait_for_change()
            except (AlreadyExists, Conflict):
                log.debug("another candidate was faster")
                await asyncio.sleep(self._jittered() / 20)
            except (ApiError, TimeoutError) as error:
                log.warning("lease %s: %s", self._key, error or "no answer in time")
                await asyncio.sleep(self._jittered())

    async def _try_to_take(self) -> bool:
        clock = asyncio.get_running_loop().time
        try:
            self._observe(await self._client.get(LEASES, self._key.namespace, self._key.name))
        except NotFound:
            self._observe(await self._create())
            return True
        if self.holder not in {"", self._identity} and clock() < self._expires_at():
            return False
        await self._write(taking=True)
        return True

    async def _wait_for_change(self) -> None:
        """Until the Lease is released, deleted or expired, or the watch ended; else `ApiError`."""
        clock = asyncio.get_running_loop().time
        began = clock()
        events = self._client.watch(
            LEASES,
            self._key.namespace,
            resource_version=resource_version_of(self._lease),
            field_selector=f"metadata.name={self._key.name}",
        )
        try:
            async with asyncio.timeout_at(self._expires_at() + MOMENT) as limit, aclosing(events):
                async for event in events:
                    if event["type"] == "BOOKMARK":
                        continue
                    if event["type"] == "DELETED":
                        return
                    self._observe(event["object"])
                    if not self.holder:
                        return
                    if limit.expired():
                        return
                    limit.reschedule(self._expires_at() + MOMENT)
                if clock() - began < self._timing.retry:
                    await asyncio.sleep(self._jittered())
        except TimeoutError:
            return

    # Keeping it

    async def _renew_while(self, work: asyncio.Task[None], renewed_at: float) -> None:
        clock = asyncio.get_running_loop().time
        wait = self._timing.retry
        while True:
            deadline = renewed_at + self._timing.renew_deadline
            await asyncio.wait({work}, timeout=min(wait, max(0.0, deadline - clock())))
            if work.done():
                return
            if clock() >= deadline - MOMENT:
                raise LeadershipLost(f"not renewed for {self._timing.renew_deadline:.0f} s")
            began = clock()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._renew()
                renewed_at, wait = began, self._timing.retry
            except TimeoutError:
                continue
            except ApiError as error:
                log.warning("lease %s can't be renewed: %s", self._key, error)
                wait = min(self._jittered(), self._timing.retry)

    async def _renew(self) -> None:
        try:
            await self._write(taking=False)
        except NotFound:
            self._observe(await self._create())
        except Conflict:
            # Somebody touched it, or our last write went through without our hearing of it.
            if not await self._still_ours():
                raise LeadershipLost(f"the lease is held by {self.holder or 'nobody'}") from None
            await self._write(taking=False)

    async def _still_ours(self) -> bool:
        self._observe(await self._client.get(LEASES, self._key.namespace, self._key.name))
        return self.holder == self._identity

    async def _release(self) -> None:
        # A second is the shortest the API allows; nobody holds it anyway.
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._time()}
        try:
            async with asyncio.timeout(self._timing.retry):
                try:
                    await self._put(spec)
                except Conflict:
                    if not await self._still_ours():
                        return
                    await self._put(spec)
            log.info("lease %s released", self._key)
        except (ApiError, TimeoutError) as error:
            log.warning("lease %s can't be released, it expires by itself: %s", self._key, error)

    # The Lease

    async def _create(self) -> Object:
        now = self._time()
        return await self._client.create(
            {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"namespace": self._key.namespace, "name": self._key.name},
                "spec": {
                    "holderIdentity": self._identity,
                    "leaseDurationSeconds": round(self._timing.duration),
                    "acquireTime": now,
                    "renewTime": now,
                    "leaseTransitions": 0,
                },
            },
            field_manager=self._field_manager,
        )

    async def _write(self, *, taking: bool) -> None:
        now = self._time()
        spec: Object = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(self._timing.duration),
            "renewTime": now,
        }
        if taking and self.holder != self._identity:
            transitions = _spec(self._lease).get("leaseTransitions")
            spec["leaseTransitions"] = (transitions if isinstance(transitions, int) else 0) + 1
            spec["acquireTime"] = now
        await self._put(spec)

    async def _put(self, spec: Object) -> None:
        changed = {**self._lease, "spec": {**_spec(self._lease), **spec}}
        self._observe(await self._client.replace(changed, field_manager=self._field_manager))

    def _observe(self, lease: Object) -> None:
        if resource_version_of(lease) != resource_version_of(self._lease):
            self._changed_at = asyncio.get_running_loop().time()
        self._lease = lease

    def _expires_at(self) -> float:
        seconds = _spec(self._lease).get("leaseDurationSeconds")
        theirs = float(seconds) if isinstance(seconds, int) and seconds > 0 else self._timing.duration
        return self._changed_at + theirs

    def _jittered(self) -> float:
        return self._timing.retry * self._rng.uniform(0.5, 1.2)

    def _time(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _spec(lease: Object) -> Object:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}


async def _end(work: asyncio.Task[None]) -> None:
    """Cancel and wait, however often we are cancelled meanwhile: the lease may go only after the work."""
    cancelled = False
    while not work.done():
        work.cancel()
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
