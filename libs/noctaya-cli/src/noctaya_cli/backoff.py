"""How long to wait before the next try: restarts of a replica, reconnects of the embedded KEDA.

Pure; the caller sleeps. Numbers are those of the kubelet and of KEDA, so that what is seen on one machine
is what will be seen in a cluster.
"""

RESTART_FIRST = 10.0
RESTART_CAP = 300.0
RESTART_RESET = 600.0
RECONNECT_FIRST = 2.0
RECONNECT_CAP = 60.0


class RestartBackoff:
    """CrashLoopBackOff: the first restart at once, then 10 s, doubling to 5 min.

    Forgotten after a run of 10 min.
    """

    def __init__(self) -> None:
        self.restarts = 0
        self._next = 0.0

    def ended(self, *, ran: float) -> float:
        """A run of `ran` seconds has ended.

        Returns the seconds to wait before the next start (0 = at once).
        """
        if ran >= RESTART_RESET:
            self._next = 0.0
        delay = self._next
        self._next = min(RESTART_CAP, delay * 2) if delay else RESTART_FIRST
        self.restarts += 1
        return delay

    @property
    def crash_looping(self) -> bool:
        """True once a restart has to wait: more than one quick end in a row."""
        return self._next > RESTART_FIRST


class ReconnectBackoff:
    """KEDA's reconnect of StreamIsActive: 2 s doubling to 60 s, 2 s again after a clean end."""

    def __init__(self) -> None:
        self._next = RECONNECT_FIRST

    def failed(self) -> float:
        """A stream broke; seconds to wait before the next one."""
        delay = self._next
        self._next = min(RECONNECT_CAP, delay * 2)
        return delay

    def ended_cleanly(self) -> float:
        """A stream ended without an error; seconds to wait before the next one."""
        self._next = RECONNECT_FIRST
        return RECONNECT_FIRST
