import pytest
from noctaya_prewarm.answers import Changed, Denied, NoRanges, Stretch, judge
from noctaya_prewarm.errors import NetworkFault
from noctaya_prewarm.retry import Retryable
from noctaya_prewarm.transport import Answer

URL = "https://cdn.example/models/w.bin?Signature=s3kr1t"
RANGED = Stretch(100, 200, 1000, ranged=True)
WHOLE = Stretch(0, 1000, 1000, ranged=False)


def answer(status: int, headers: dict[str, str] | None = None, *, redirected: bool = False) -> Answer:
    return Answer(status=status, headers=headers or {}, url=URL, redirected=redirected, body=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (answer(206, {"content-range": "bytes 100-199/1000"}), RANGED),
        (answer(206, {"content-range": "Bytes 100-199/*"}), RANGED),
        (answer(200, {"content-length": "1000"}), WHOLE),
        (answer(200), WHOLE),
        (answer(200, {"content-encoding": "identity"}), WHOLE),
    ],
)
def test_the_bytes_that_were_asked_for_are_taken(given: Answer, wanted: Stretch) -> None:
    judge(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted", "error"),
    [
        (answer(206, {"content-range": "bytes 100-199/1001"}), RANGED, Changed),
        (answer(206, {"content-range": "bytes 0-99/1000"}), RANGED, Retryable),
        (answer(206, {"content-range": "bytes 100-150/1000"}), RANGED, Retryable),
        (answer(206), RANGED, Retryable),
        (answer(200, {"content-length": "1000"}), RANGED, NoRanges),
        (answer(200, {"content-length": "999"}), RANGED, Changed),
        (answer(200, {"content-length": "1001"}), WHOLE, Changed),
        (answer(200, {"content-encoding": "gzip"}), WHOLE, NetworkFault),
        (answer(404), RANGED, Changed),
        (answer(410), RANGED, Changed),
        (answer(412), RANGED, Changed),
        (answer(416), RANGED, Changed),
        (answer(401), RANGED, Denied),
        (answer(403), RANGED, Denied),
        (answer(403, redirected=True), RANGED, Retryable),
        (answer(404, redirected=True), RANGED, Retryable),
        (answer(429), RANGED, Retryable),
        (answer(503), RANGED, Retryable),
        (answer(451), RANGED, NetworkFault),
        (answer(204), RANGED, NetworkFault),
    ],
)
def test_everything_else_has_its_meaning(given: Answer, wanted: Stretch, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        judge(given, wanted)
    assert "s3kr1t" not in str(caught.value)


def test_the_hubs_own_words_are_told_without_control_characters() -> None:
    headers = {"x-error-code": "GatedRepo", "x-error-message": "Access\x1b[31m is restricted\n"}
    with pytest.raises(Denied, match=r"\(GatedRepo: Access\[31m is restricted\)"):
        judge(answer(403, headers), RANGED)


def test_retry_after_goes_with_the_failure() -> None:
    with pytest.raises(Retryable) as caught:
        judge(answer(429, {"retry-after": "9"}), RANGED)
    assert caught.value.after == 9
