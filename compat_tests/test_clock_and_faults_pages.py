"""What docs/testing/clock.md and docs/testing/faults.md show works as it stands there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat_tests.brokers import ROOT
from compat_tests.page_blocks import PageRun, find_blocks
from compat_tests.ports import free_port


@pytest.mark.parametrize("name", ["clock", "faults"])
def test_a_page_of_tests(broker_kind: str, tmp_path: Path, name: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("the clock and the faults are this broker's own")
    page = (ROOT / "docs" / "testing" / f"{name}.md").read_text()
    ports = {before: str(free_port()) for before in ("9092", "8080")}
    run = PageRun(
        tmp_path, {f"{before}{port}": f"{before}{free}" for port, free in ports.items() for before in (":", "--port ")}
    )
    try:
        outputs = [run.run(block) for block in find_blocks(page)]
        answers = [json.loads(line) for output in outputs for line in output.splitlines() if line.startswith("{")]
        assert answers
        assert not any("error" in answer for answer in answers)
        assert "must not serve in production" in run.log
        if name == "clock":
            assert {answer["advanced_ms"] for answer in answers} == {25 * 3_600_000}
        else:
            shown = page.partition("The third command shows")[2].split("```")[1].strip()
            assert json.loads(shown) in answers
    finally:
        run.stop()
