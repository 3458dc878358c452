"""Which bytes of a file are there: half-open intervals, sorted, apart."""

from bisect import bisect_left
from collections.abc import Iterator


class Intervals:
    """A set of integers kept as intervals `[start, end)`."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(list(zip(self._starts, self._ends, strict=True)))

    @property
    def total(self) -> int:
        """How many integers are in the set."""
        return sum(self._ends) - sum(self._starts)

    def add(self, start: int, end: int) -> int:
        """Add `[start, end)`, of which nothing, some or all may be there.

        Returns:
            How many of them are new.
        """
        if start >= end:
            return 0
        # From the first interval that ends at or after start to the last that starts at or before end.
        first = bisect_left(self._ends, start)
        last = first
        known = 0
        low, high = start, end
        while last < len(self._starts) and self._starts[last] <= end:
            known += max(0, min(end, self._ends[last]) - max(start, self._starts[last]))
            low, high = min(low, self._starts[last]), max(high, self._ends[last])
            last += 1
        self._starts[first:last] = [low]
        self._ends[first:last] = [high]
        return end - start - known

    def end_of_run(self, start: int) -> int:
        """The end of the unbroken run that holds `start`; `start` itself when it isn't there."""
        found = bisect_left(self._ends, start + 1)
        if found < len(self._starts) and self._starts[found] <= start:
            return self._ends[found]
        return start

    def gaps(self, size: int) -> list[tuple[int, int]]:
        """What is missing of `[0, size)`."""
        found = []
        position = 0
        for start, end in zip(self._starts, self._ends, strict=True):
            if position < min(start, size):
                found.append((position, min(start, size)))
            position = max(position, end)
        if position < size:
            found.append((position, size))
        return found

    def clear(self) -> None:
        """Empty the set."""
        self._starts.clear()
        self._ends.clear()
