"""Which backend address the next request goes to (behaviour G7).

The balancer knows, per address, whether the prober found it ready, how many requests are in flight
there, and whether the data path just failed to connect to it (`suspect`, until the next probe says
more). It picks the ready address with the fewest requests in flight, ties in turn. Addresses come from
discovery in two ranks: the pods of the headless Service, and backups (the Service's own address) that
serve only while no pod is known to be ready.

Whoever uses an address calls `opened` when it starts and `closed` when it ends, also after the address
left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple


class Address(NamedTuple):
    """Where a backend listens; `host` is a name or an IP literal without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _Entry:
    __slots__ = ("address", "backup", "in_flight", "known", "ready", "suspect", "turn")

    def __init__(self, address: Address, *, backup: bool) -> None:
        self.address = address
        self.backup = backup
        self.known = True
        self.ready = False
        self.suspect = False
        self.in_flight = 0
        self.turn = 0


class Balancer:
    """Ready state and load of every known address; all calls are synchronous and from one thread."""

    def __init__(self) -> None:
        self._entries: dict[Address, _Entry] = {}
        self._ready: list[_Entry] = []
        self._turn = 0
        self._on_ready: list[Callable[[], None]] = []
        self._on_cold: list[Callable[[], None]] = []
        self._on_removed: list[Callable[[Address], None]] = []
        self._on_suspect: list[Callable[[Address], None]] = []
        self._on_doubt: list[Callable[[], None]] = []

    def subscribe(
        self,
        *,
        ready: Callable[[], None] | None = None,
        cold: Callable[[], None] | None = None,
        removed: Callable[[Address], None] | None = None,
        suspect: Callable[[Address], None] | None = None,
        doubt: Callable[[], None] | None = None,
    ) -> None:
        """Be told: an address became ready; the last ready one was lost; an address left; a connect failed
        there; a ready one failed a probe.
        """
        for listeners, listener in (
            (self._on_ready, ready),
            (self._on_cold, cold),
            (self._on_removed, removed),
            (self._on_suspect, suspect),
            (self._on_doubt, doubt),
        ):
            if listener is not None:
                listeners.append(listener)  # type: ignore[arg-type]

    @property
    def ready(self) -> bool:
        """True when at least one address is ready: the service is warm."""
        return bool(self._ready)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Every known address, backups last."""
        known = (entry for entry in self._entries.values() if entry.known)
        return tuple(entry.address for entry in sorted(known, key=lambda entry: entry.backup))

    @property
    def ready_addresses(self) -> tuple[Address, ...]:
        """The addresses that may be picked."""
        return tuple(entry.address for entry in self._ready)

    @property
    def unready(self) -> int:
        """How many addresses of pods are known and not ready. A backup is no pod."""
        return sum(entry.known and not entry.ready and not entry.backup for entry in self._entries.values())

    def is_ready(self, address: Address) -> bool:
        """True when `address` is known and was found ready."""
        entry = self._entries.get(address)
        return entry is not None and entry.ready

    def is_trusted(self, address: Address) -> bool:
        """True when `address` is ready and nobody has failed to connect there since its last probe."""
        entry = self._entries.get(address)
        return entry is not None and entry.ready and not entry.suspect

    def in_flight(self, address: Address) -> int:
        """Requests opened and not closed at `address`; 0 for an unknown one."""
        entry = self._entries.get(address)
        return 0 if entry is None else entry.in_flight

    def pick(self, exclude: Collection[Address] = (), *, trusted: bool = False) -> Address | None:
        """The ready address with the fewest requests in flight, or None.

        Suspect addresses come last, and never with `trusted`.
        """
        ready = self._ready
        if len(ready) == 1 and not exclude:
            entry = ready[0]
            return None if trusted and entry.suspect else entry.address
        best: _Entry | None = None
        for entry in ready:
            if entry.address in exclude or (trusted and entry.suspect):
                continue
            if best is None or _rank(entry) < _rank(best):
                best = entry
        if best is None:
            return None
        self._turn += 1
        best.turn = self._turn
        return best.address

    def opened(self, address: Address) -> None:
        """A request starts using `address`."""
        entry = self._entries.get(address)
        if entry is not None:
            entry.in_flight += 1

    def closed(self, address: Address) -> None:
        """A request that was opened at `address` ended."""
        entry = self._entries.get(address)
        if entry is not None and entry.in_flight > 0:
            entry.in_flight -= 1
            if not entry.known and entry.in_flight == 0:
                del self._entries[address]

    def report_unreachable(self, address: Address) -> None:
        """The data path could not connect to `address`: it is probed at once, and avoided until that
        probe. A backup that nobody answers at while no pod is known makes the service cold.
        """
        entry = self._entries.get(address)
        if entry is None or not entry.ready or entry.suspect:
            return
        if entry.backup and not any(each.known and not each.backup for each in self._entries.values()):
            # The last pod has gone, and what still answered probes at the Service was that one.
            self.mark(address, ready=False)
        else:
            entry.suspect = True
        for listener in self._on_suspect:
            listener(address)

    def doubt(self) -> None:
        """A ready address failed a probe. That makes nothing cold, but the addresses may have changed."""
        for listener in self._on_doubt:
            listener()

    def set_addresses(self, primary: Sequence[Address], backup: Sequence[Address] = ()) -> None:
        """Replace the known addresses; those that stay keep their state, those that left are announced."""
        wanted = dict.fromkeys(backup, True) | dict.fromkeys(primary, False)
        was_ready = self.ready
        gone = [address for address in self.addresses if address not in wanted]
        for address in gone:
            self._forget(address)
        for address, is_backup in wanted.items():
            entry = self._entries.setdefault(address, _Entry(address, backup=is_backup))
            entry.backup = is_backup
            entry.known = True
        self._rebuild()
        for address in gone:
            for listener in self._on_removed:
                listener(address)
        if was_ready and not self.ready:
            self._announce_cold()

    def mark(self, address: Address, *, ready: bool) -> None:
        """What the prober found out about `address`; unknown addresses are ignored."""
        entry = self._entries.get(address)
        if entry is None or not entry.known:
            return
        was_ready = self.ready
        came_back = ready and (not entry.ready or entry.suspect)
        entry.ready = ready
        entry.suspect = False
        self._rebuild()
        if came_back:
            for listener in self._on_ready:
                listener()
        elif was_ready and not self.ready:
            self._announce_cold()

    def _forget(self, address: Address) -> None:
        entry = self._entries[address]
        if entry.in_flight:
            # Its requests still end here; the count must not be given to a newcomer at the same address.
            entry.known = entry.ready = entry.suspect = False
        else:
            del self._entries[address]

    def _rebuild(self) -> None:
        ready = [entry for entry in self._entries.values() if entry.ready]
        primary = [entry for entry in ready if not entry.backup]
        self._ready = primary or ready

    def _announce_cold(self) -> None:
        for listener in self._on_cold:
            listener()


def _rank(entry: _Entry) -> tuple[bool, int, int]:
    return (entry.suspect, entry.in_flight, entry.turn)
