"""The commands in docs/tools/data.md and docs/tools/doctor.md do what the pages say."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from compat_tests.brokers import ROOT, Broker
from compat_tests.page_blocks import PageRun, find_blocks

PAGES = ROOT / "docs" / "tools"
SHOWN = re.compile(r"^```\n(Partition:.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.tools


def test_the_pages_commands(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKACOMPAT_BOOTSTRAP_SERVER", broker.bootstrap)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    words = {f"kafkacompat {name} ": f"{sys.executable} -m kafkacompat {name} " for name in ("produce", "consume")}
    run = PageRun(tmp_path, words | {"localhost:9092": broker.bootstrap})
    page = (PAGES / "data.md").read_text()
    outputs = [run.run(block) for block in find_blocks(page)]
    assert outputs[:3] == ["", "12\n7\nnull\n", *SHOWN.findall(page)]
    assert outputs[4] == "12\n7\nnull\n"
    assert '"value":{"id":1}' in outputs[6]
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "picture").read_bytes()
    lines, as_json = (run.run(block) for block in find_blocks((PAGES / "doctor.md").read_text()))
    assert [line.split()[0] for line in lines.splitlines()] == ["ok"] * 9
    assert len(as_json.splitlines()) == 4
