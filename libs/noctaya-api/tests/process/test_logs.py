import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from noctaya_api.process.logs import configure_logging, request_id


@pytest.fixture(autouse=True)
def restored_root() -> Iterator[None]:
    """Leave the root logger as pytest had it."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def written(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_time_level_logger_message_and_service() -> None:
    stream = io.StringIO()
    configure_logging(service="noctaya-test", stream=stream)
    logging.getLogger("some.module").warning("lost %d of %d", 1, 3, extra={"member": "m", "port": 8080})
    (line,) = written(stream)
    assert line.pop("ts").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "some.module",
        "msg": "lost 1 of 3",
        "service": "noctaya-test",
        "member": "m",
        "port": 8080,
    }


def test_the_request_id_in_force_is_on_the_line() -> None:
    stream = io.StringIO()
    configure_logging(service="s", stream=stream)
    token = request_id.set("req-1")
    logging.getLogger("x").info("inside")
    request_id.reset(token)
    logging.getLogger("x").info("outside")
    inside, outside = written(stream)
    assert inside["request_id"] == "req-1"
    assert "request_id" not in outside


def test_an_exception_stays_on_the_one_line() -> None:
    stream = io.StringIO()
    configure_logging(service="s", stream=stream)
    try:
        dict[str, int]()["gone"]
    except KeyError:
        logging.getLogger("x").exception("failed\nbadly")
    (line,) = written(stream)
    assert line["msg"] == "failed\nbadly"
    assert "KeyError: 'gone'" in line["exc"]


@pytest.mark.parametrize("name", ["authorization", "api_key", "demandToken", "PASSWORD", "client_secret"])
def test_an_extra_that_names_a_credential_is_redacted(name: str) -> None:
    stream = io.StringIO()
    configure_logging(service="s", stream=stream)
    logging.getLogger("x").info("hello", extra={name: "sk-live"})
    assert "sk-live" not in stream.getvalue()
    assert written(stream)[0][name] == "[redacted]"


def test_an_extra_that_json_cannot_express_is_written_as_text() -> None:
    stream = io.StringIO()
    configure_logging(service="s", stream=stream)
    logging.getLogger("x").info("hello", extra={"error": ValueError("bad")})
    assert written(stream)[0]["error"] == "bad"


def test_levels_filter_and_uvicorn_goes_the_same_way() -> None:
    stream = io.StringIO()
    configure_logging(service="s", level="warning", stream=stream)
    logging.getLogger("x").info("quiet")
    logging.getLogger("uvicorn.error").error("loud")
    assert [line["logger"] for line in written(stream)] == ["uvicorn.error"]


def test_configuring_twice_writes_a_line_once() -> None:
    configure_logging(service="s", stream=io.StringIO())
    stream = io.StringIO()
    configure_logging(service="s", stream=stream)
    logging.getLogger("x").info("once")
    assert len(written(stream)) == 1


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="loud"):
        configure_logging(service="s", level="loud")
