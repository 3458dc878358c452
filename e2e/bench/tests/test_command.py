import argparse

import pytest
from noctaya_bench import __main__
from noctaya_bench.__main__ import MEASURES, exit_code, failed, main, measure_names, parse_arguments
from noctaya_bench.measures.p3_added_latency import added_ms
from noctaya_bench.measures.p10_aggregate_scaler import Pushes
from noctaya_bench.peers.go_proxy import cache_directory
from noctaya_bench.tools import Tools
from noctaya_bench.verdicts import Finding, at_most


def found(value):
    return Finding(measure="P1", title="", verdicts=[at_most("x", value, 1.0, "")])


def test_all_measures_run_unless_some_are_named():
    assert parse_arguments([]).only == tuple(name for name in MEASURES if name != "C1")
    assert parse_arguments(["operator"]).only == ("O1",)
    assert parse_arguments(["cluster", "--quick"]).only == ("C1",)
    assert parse_arguments(["--only", "p1, P10"]).only == ("P1", "P10")


def test_a_subject_and_names_together_are_refused():
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(["cluster", "--only", "P1"])


def test_a_cluster_needs_no_tool_of_the_gateways_peers(monkeypatch, capsys):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(__main__, "find_tools", lambda: Tools(nginx=None, wrk=None, go=None))
    monkeypatch.setitem(MEASURES, "C1", found_nothing)
    assert main(["cluster"]) == 0
    assert main(["--only", "P1"]) == 2
    assert "not installed" in capsys.readouterr().err


async def found_nothing(lab):
    return Finding(measure="C1", title="")


def test_unknown_measure_is_refused_by_name():
    with pytest.raises(argparse.ArgumentTypeError, match="there is no P11"):
        measure_names("P1,P11")


def test_exit_code_says_whether_every_promise_was_reached(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    assert exit_code([found(0.9)]) == 0
    assert exit_code([found(0.9), found(1.1)]) == 1
    assert exit_code([failed("P1", "nginx is not installed")]) == 0


def test_what_was_not_measured_is_an_error_in_ci(monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert exit_code([failed("P1", "nginx is not installed")]) == 2
    assert exit_code([found(1.1), failed("P2", "boom")]) == 1


def test_missing_tools_are_named():
    assert Tools(nginx=None, wrk="/usr/bin/wrk", go=None).missing == ("nginx", "go")


def test_added_latency_is_the_median_of_the_differences():
    assert added_ms([0.2, 0.9, 0.3], [0.1, 0.2, 0.1]) == pytest.approx(0.2)


def test_go_binary_is_kept_by_compiler_and_source(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    version = "go version go1.26.8 linux/amd64\n"
    one, other = cache_directory(version, b"package main"), cache_directory(version, b"package other")
    assert one != other
    assert one.parent == other.parent == tmp_path / "noctaya" / "bench"
    assert one.name.startswith("go1.26.8-")


def test_pushes_are_matched_and_repeats_left_out():
    pushes = Pushes()
    pushes.seen(False)
    pushes.expect(True)
    pushes.seen(True)
    pushes.seen(True)
    pushes.expect(False)
    pushes.expect(True)
    pushes.expect(False)
    assert len(pushes.took_ms) == 1
    assert pushes.missed == 1
