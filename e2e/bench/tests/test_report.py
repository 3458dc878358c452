from datetime import UTC, datetime

import pytest
from noctaya_bench.report import (
    CLUSTER,
    GATEWAY,
    OPERATOR,
    by_section,
    render_report,
    render_table,
    replace_measured,
)
from noctaya_bench.verdicts import Finding, Verdict, at_most

WHEN = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
FINDING = Finding(
    measure="P2",
    title="SSE, 64 streams",
    columns=("proxy", "CPU us a chunk"),
    rows=[("nginx", "24.0"), ("gateway (protocol)", "31.0")],
    verdicts=[at_most("CPU a chunk <= 1.4 x nginx", 1.29, 1.4, "1.29 x")],
    seconds=90.0,
)


def test_at_most_is_reached_at_the_limit_and_missed_above():
    assert at_most("x", 1.4, 1.4, "").word == "reached"
    assert at_most("x", 1.41, 1.4, "").word == "MISSED"


def test_what_could_not_be_measured_is_neither_reached_nor_missed():
    assert at_most("x", None, 1.4, "nginx is not installed") == Verdict("x", "nginx is not installed", None)
    assert at_most("x", None, 1.4, "").word == "not measured"


def test_table_is_markdown():
    assert render_table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_report_puts_promises_first_then_figures_then_versions():
    text = render_report([FINDING], {"nginx": "nginx/1.22.1"}, when=WHEN, quick=False)
    assert text.startswith("Measured on 2026-11-30 in a full run of 1.5 minutes.\n")
    promise = text.index("| P2 | CPU a chunk <= 1.4 x nginx | 1.29 x | reached |")
    figures = text.index("### P2 SSE, 64 streams\n\n| proxy | CPU us a chunk |")
    versions = text.index("| nginx | nginx/1.22.1 |")
    assert promise < figures < versions


def document(gateway, operator):
    begin = "begin; written by python -m noctaya_bench --write -->"
    return (
        f"# Performance\n\nprose\n\n<!-- measured: {begin}\n{gateway}\n<!-- measured: end -->\n\n"
        f"more prose\n\n<!-- operator measured: {begin}\n{operator}\n<!-- operator measured: end -->\n"
    )


def test_only_one_measured_part_of_the_document_is_replaced():
    once = replace_measured(document("old", "others"), "new\n", section=GATEWAY)
    assert once == document("\nnew\n", "others")
    assert replace_measured(once, "new\n", section=GATEWAY) == once
    assert replace_measured(once, "theirs\n", section=OPERATOR) == document("\nnew\n", "\ntheirs\n")


def test_what_only_one_measure_had_to_do_with_is_among_the_versions():
    finding = Finding(measure="C1", title="", versions={"KEDA": "2.20.2"})
    text = render_report([finding], {"kernel": "Linux"}, when=WHEN, quick=True)
    assert text.index("| kernel | Linux |") < text.index("| KEDA | 2.20.2 |")


def test_measures_of_a_cluster_have_a_part_of_their_own():
    cold = Finding(measure="C1", title="")
    assert by_section([FINDING, cold]) == {GATEWAY: [FINDING], CLUSTER: [cold]}


def test_measures_of_the_operator_have_a_part_of_their_own():
    scale = Finding(measure="O1", title="")
    assert by_section([FINDING, scale]) == {GATEWAY: [FINDING], OPERATOR: [scale]}
    assert by_section([scale]) == {OPERATOR: [scale]}


def test_document_without_markers_is_refused():
    with pytest.raises(ValueError, match="lacks the lines"):
        replace_measured("# Performance\n", "figures")
