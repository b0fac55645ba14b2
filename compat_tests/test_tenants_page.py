"""What docs/TENANTS.md shows for one node works as it stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.brokers import ROOT, answers_api_versions
from compat_tests.page_blocks import PageRun, find_blocks, find_section
from compat_tests.ports import free_port
from compat_tests.waiting import until

PORTS = ("9092", "19001", "19002")


def test_five_minutes_on_one_node(broker_kind: str, tmp_path: Path) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("instances are this broker's own")
    section = find_section((ROOT / "docs" / "TENANTS.md").read_text(), "Five minutes on one node")
    ports = {port: free_port() for port in PORTS}
    run = PageRun(
        tmp_path, {f"{before}{port}": f"{before}{free}" for port, free in ports.items() for before in (":", "--port ")}
    )
    try:
        outputs = [run.run(block) for block in find_blocks(section)]
        shown = next(output for output in outputs if "an order of" in output)
        for port in PORTS:
            shown = shown.replace(f":{ports[port]} ", f":{port} ")
        assert f"```\n{shown}```" in section
        assert any("of 20000000000" in output for output in outputs)
        assert answers_api_versions(ports["19001"])
        until(lambda: not answers_api_versions(ports["19002"]))
    finally:
        run.stop()
