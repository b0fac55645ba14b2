"""``make tenants`` in two seconds: quiet instances beside one that sends too much. Times decide nothing here."""

from __future__ import annotations

from pathlib import Path

from compat_tests.tenants.run import PHASES, Extent, run_attacks


def test_a_noisy_instance_is_limited_and_quiet_ones_receive_every_answer(tmp_path: Path) -> None:
    steps: list[str] = []
    (outcome,) = run_attacks(["throughput"], tmp_path / "broker", Extent(seconds=0.6), steps.append)
    assert steps == ["preparing", *PHASES]
    assert outcome.records > 100
    assert outcome.unanswered == 0
    assert outcome.is_bounded, outcome.noise
    assert set(outcome.latencies_ms) == set(PHASES)
