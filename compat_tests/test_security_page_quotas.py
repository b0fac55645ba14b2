"""What docs/SECURITY.md shows about quotas works as it stands there."""

from __future__ import annotations

import re
import shlex

import pytest

from compat_tests.brokers import ROOT
from compat_tests.conftest import MakeBroker
from compat_tests.java_tools import run_java

pytestmark = pytest.mark.tools

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOOL = "kafka-configs.sh"


def list_commands() -> list[list[str]]:
    """Return the command lines of the section, each as words."""
    page = (ROOT / "docs" / "SECURITY.md").read_text()
    section = page.partition("\n## Quotas\n")[2].partition("\n## ")[0]
    return [shlex.split(line) for block in BLOCK.findall(section) for line in block.splitlines()]


def test_the_commands_about_quotas_as_the_page_shows_them(make_broker: MakeBroker) -> None:
    broker = make_broker()
    outputs = []
    for tool, *arguments in list_commands():
        assert tool == TOOL
        words = [broker.bootstrap if word == "localhost:9092" else word for word in arguments]
        outputs.append(run_java("kafka.admin.ConfigCommand", words).stdout)
    described = next(output for output in outputs if output.startswith("Quota configs"))
    assert "producer_byte_rate=1000000" in described
    assert sum("Completed updating" in output for output in outputs) == len(outputs) - 1
