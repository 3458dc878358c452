"""Findings as Markdown: the summary of promises first, then a table a measure.

docs/performance.md keeps its prose; only what stands between two markers is written by the bench. Gateway and
aggregate scaler, operator, and cluster have a pair of their own each, so that each can be measured alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from .verdicts import Finding

GATEWAY = "measured"
OPERATOR = "operator measured"
CLUSTER = "cluster measured"
PREWARM = "prewarm measured"
SECTIONS = {"O": OPERATOR, "D": PREWARM, "C": CLUSTER}
"""By the first letter of a measure; the others belong to the gateway."""
BEGIN = "<!-- {section}: begin; written by python -m noctaya_bench --write -->"
END = "<!-- {section}: end -->"


def render_report(
    findings: Sequence[Finding], versions: Mapping[str, str], *, when: datetime, quick: bool
) -> str:
    """The measured part of the document."""
    kind = "a quick run" if quick else "a full run"
    took = sum(finding.seconds for finding in findings)
    shown = dict(versions)
    for finding in findings:
        shown |= finding.versions
    parts = [
        f"Measured on {when:%Y-%m-%d} in {kind} of {took / 60:.1f} minutes.",
        render_promises(findings),
        *(render_finding(finding) for finding in findings),
        f"### {title_of_versions(findings)}",
        render_table(("what", "version"), list(shown.items())),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def title_of_versions(findings: Sequence[Finding]) -> str:
    """Its heading names the measures: the document has one such table for each of its parts."""
    first, last = findings[0].measure, findings[-1].measure
    return f"Versions behind {first}" + (f" to {last}" if last != first else "")


def render_promises(findings: Sequence[Finding]) -> str:
    """One row a promise."""
    rows = [
        (finding.measure, verdict.promise, verdict.measured, verdict.word)
        for finding in findings
        for verdict in finding.verdicts
    ]
    return render_table(("#", "promise", "measured", ""), rows)


def render_finding(finding: Finding) -> str:
    """The figures of one measure."""
    heading = f"### {finding.measure} {finding.title}"
    return f"{heading}\n\n{render_table(finding.columns, finding.rows)}"


def render_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; cells may not hold a pipe."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def by_section(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Findings by the part of the document they belong in."""
    sections: dict[str, list[Finding]] = {}
    for finding in findings:
        section = SECTIONS.get(finding.measure[0], GATEWAY)
        sections.setdefault(section, []).append(finding)
    return sections


def replace_measured(document: str, measured: str, *, section: str = GATEWAY) -> str:
    """`document` with `measured` between the markers of `section`; ValueError when they are missing."""
    first, last = BEGIN.format(section=section), END.format(section=section)
    head, begin, rest = document.partition(first)
    _, end, tail = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the document lacks the lines {first!r} and {last!r}")
    return f"{head}{begin}\n\n{measured}\n{end}{tail}"


def write_document(path: Path, measured: str, *, section: str = GATEWAY) -> None:
    """Put the measured part into the document at `path`."""
    path.write_text(replace_measured(path.read_text(), measured, section=section))
