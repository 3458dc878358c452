import json

import pytest
from noctaya_bench.payloads import API_KEY, chat_body
from noctaya_bench.wrk import WrkResult, parse_wrk, write_script

OUTPUT = """\
Running 3s test @ http://127.0.0.1:8080
  1 threads and 32 connections
  61234 requests in 3.00s, 76.12MB read
Requests/sec:  20411.33
BENCH {"requests":61234,"microseconds":3000114,"errors":3,"p50":1510.0,"p99":4020.5}
"""


def test_result_line_of_the_script_is_read():
    result = parse_wrk(OUTPUT)
    assert result == WrkResult(requests=61234, errors=3, seconds=3.000114, p50_ms=1.51, p99_ms=4.0205)
    assert result.rate == pytest.approx(20410.6, abs=0.1)


def test_output_without_the_line_is_an_error_that_shows_it():
    with pytest.raises(ValueError, match="unable to connect"):
        parse_wrk("unable to connect to 127.0.0.1:1: Connection refused\n")


def test_script_posts_the_chat_request_with_the_key(tmp_path):
    script = write_script(tmp_path).read_text()
    assert chat_body(stream=False).decode() in script
    assert f"Bearer {API_KEY}" in script
    assert '{"requests":%d' in script, "the braces of the format must survive"


def test_payloads_have_the_sizes_they_are_named_for():
    assert len(chat_body(stream=True)) == len(chat_body(stream=False)) == 2048
    assert json.loads(chat_body(stream=True))["stream"] is True
