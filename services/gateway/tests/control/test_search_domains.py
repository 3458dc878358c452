"""Search lists, and what names become by them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_gateway.search_domains import absolute, machine_search_domains, search_domains

POD = """
search prod.svc.cluster.local svc.cluster.local cluster.local example.com
nameserver 10.96.0.10
options ndots:5
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        (POD, ("prod.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.com")),
        ("search a b\nsearch c.\n", ("c",)),
        ("domain only.example\n", ("only.example",)),
        ("search a\ndomain\n", ("a",)),
        ("search a\nsearch\n", ()),
        ("# search a\n;search b\nsearch .\n", ()),
    ],
)
def test_the_last_search_list_counts(text: str, found: tuple[str, ...]) -> None:
    assert search_domains(text) == found


@pytest.mark.parametrize(
    ("host", "search", "name"),
    [
        ("chat-pods.prod.svc", search_domains(POD), "chat-pods.prod.svc.cluster.local."),
        (
            "chat.prod.svc",
            ("x.svc.corp.example", "svc.corp.example", "corp.example"),
            "chat.prod.svc.corp.example.",
        ),
        ("chat.prod.svc.cluster.local", search_domains(POD), "chat.prod.svc.cluster.local"),
        ("chat", search_domains(POD), "chat"),
        ("10.0.0.1", search_domains(POD), "10.0.0.1"),
        ("chat.prod.svc", (), "chat.prod.svc"),
        ("chat.prod.svc", ("example.com",), "chat.prod.svc"),
        ("chat.prod.svc", ("svc.example",), "chat.prod.svc"),
    ],
)
def test_a_service_gets_the_domain_that_the_search_list_tells(
    host: str, search: tuple[str, ...], name: str
) -> None:
    assert absolute(host, search) == name


@given(st.text(max_size=200))
def test_any_file_is_read(text: str) -> None:
    assert all(domain and not domain.endswith(".") for domain in search_domains(text))


def test_without_a_readable_file_there_is_no_list(tmp_path: Path) -> None:
    assert machine_search_domains(tmp_path / "resolv.conf") == ()
    (tmp_path / "resolv.conf").write_bytes(b"search \xff a\n")
    assert machine_search_domains(tmp_path / "resolv.conf")[1] == "a"
