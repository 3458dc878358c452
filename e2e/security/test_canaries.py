"""The search itself: what would be a leak is found in every form."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from .canaries import leaks

SECRET = "canary/with+odd=signs-0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f"GET /?key={SECRET} 200",
        f"https://u:{quote(SECRET, safe='')}@hub/",
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(f"user:{SECRET}".encode()).decode(),
        base64.b64encode(f"us:{SECRET}!".encode()).decode(),
        SECRET.encode().hex(),
    ],
)
def test_a_secret_is_found_in_every_form(text: str) -> None:
    (found,) = leaks({"key": SECRET}, {"log": f"before {text} after"})
    assert found.startswith("key in log: ")


def test_what_is_no_secret_is_not_found() -> None:
    assert not leaks({"key": SECRET}, {"log": "canary/with+odd=signs-01234 nothing", "empty": b""})
