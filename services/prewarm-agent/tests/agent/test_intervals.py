from hypothesis import given
from hypothesis import strategies as st
from noctaya_prewarm.intervals import Intervals

SIZE = 40
STRETCHES = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)), max_size=20)


@given(STRETCHES)
def test_intervals_are_the_set_of_their_integers(stretches: list[tuple[int, int]]) -> None:
    kept, plain = Intervals(), set[int]()
    for start, end in stretches:
        stretch = set(range(start, end))
        assert kept.add(start, end) == len(stretch - plain)
        plain |= stretch
        assert kept.total == len(plain)
        assert {number for low, high in kept for number in range(low, high)} == plain
        assert all(one[1] < other[0] for one, other in zip(list(kept), list(kept)[1:], strict=False))
        missing = {number for low, high in kept.gaps(SIZE) for number in range(low, high)}
        assert missing == set(range(SIZE)) - plain
        for position in range(SIZE + 1):
            expected = position
            while expected in plain:
                expected += 1
            assert kept.end_of_run(position) == expected


def test_a_cleared_set_is_empty() -> None:
    kept = Intervals()
    kept.add(0, 5)
    kept.clear()
    assert (list(kept), kept.gaps(3)) == ([], [(0, 3)])
