"""What results of probes mean."""

from hypothesis import given
from hypothesis import strategies as st
from noctaya_cli.probes import Health, HttpGet, Probe, ProbeKind, Probes

PLAIN = Probe(HttpGet("/health"))


def test_without_probes_a_container_is_ready_at_once() -> None:
    health = Health(Probes())
    assert health.started
    assert health.ready


def test_nothing_else_runs_before_the_startup_probe_has_succeeded() -> None:
    health = Health(Probes(startup=PLAIN, readiness=PLAIN, liveness=PLAIN))
    assert [kind for kind in ProbeKind if health.runs(kind)] == [ProbeKind.STARTUP]
    health.result(ProbeKind.READINESS, success=True)
    assert not health.ready
    health.result(ProbeKind.STARTUP, success=True)
    assert [kind for kind in ProbeKind if health.runs(kind)] == [ProbeKind.READINESS, ProbeKind.LIVENESS]
    assert not health.ready


def test_a_startup_probe_that_fails_too_often_ends_the_container() -> None:
    health = Health(Probes(startup=Probe(HttpGet(), failure_threshold=2)))
    health.result(ProbeKind.STARTUP, success=False, reason="status 503")
    assert health.failure is None
    health.result(ProbeKind.STARTUP, success=False, reason="status 503")
    assert health.failure == "startup probe failed 2 times: status 503"


def test_failures_have_to_be_in_a_row() -> None:
    health = Health(Probes(liveness=Probe(HttpGet(), failure_threshold=2)))
    for success in (False, True, False, True, False):
        health.result(ProbeKind.LIVENESS, success=success)
    assert health.failure is None


def test_readiness_goes_and_comes_with_its_thresholds_and_never_ends_the_container() -> None:
    health = Health(Probes(readiness=Probe(HttpGet(), success_threshold=2, failure_threshold=3)))
    seen = []
    for success in (True, True, False, False, False, True, True):
        health.result(ProbeKind.READINESS, success=success)
        seen.append(health.ready)
    assert seen == [False, True, True, True, False, False, True]
    assert health.failure is None


PROBE = st.none() | st.builds(
    lambda success, failure: Probe(HttpGet(), success_threshold=success, failure_threshold=failure),
    st.integers(1, 3),
    st.integers(1, 3),
)


@given(
    st.builds(Probes, startup=PROBE, readiness=PROBE, liveness=PROBE),
    st.lists(st.tuples(st.sampled_from(ProbeKind), st.booleans()), max_size=60),
)
def test_whatever_the_results_ready_implies_started_and_a_failure_is_final(
    probes: Probes, results: list[tuple[ProbeKind, bool]]
) -> None:
    health = Health(probes)
    for kind, success in results:
        before = (health.started, health.failure)
        ran = health.runs(kind)
        snapshot = (health.started, health.ready, health.failure)
        health.result(kind, success=success)
        if not ran:
            assert (health.started, health.ready, health.failure) == snapshot
        assert not health.ready or health.started
        assert health.started >= before[0]
        if before[1] is not None:
            assert health.failure == before[1]
        if health.failure is not None:
            assert not any(health.runs(other) for other in ProbeKind)
            assert not health.ready
