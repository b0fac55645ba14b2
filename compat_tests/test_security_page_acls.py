"""What docs/SECURITY.md shows about ACLs and the audit log works as it stands there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from compat_tests.brokers import ROOT
from compat_tests.conftest import MakeBroker
from compat_tests.java_tools import run_java
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.config.java_properties import parse_properties
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.errors import ErrorCode

pytestmark = pytest.mark.tools

BLOCK = re.compile(r"^```(sh|properties)\n(.*?)^```", re.MULTILINE | re.DOTALL)
REFUSED_ADDRESS = "127.0.0.2"


def list_blocks(title: str, kind: str) -> list[str]:
    """Return the blocks of a kind in a section."""
    page = (ROOT / "docs" / "SECURITY.md").read_text()
    section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [text for block_kind, text in BLOCK.findall(section) if block_kind == kind]


def read_properties(title: str) -> dict[str, str]:
    return {
        name: value for block in list_blocks(title, "properties") for name, value in parse_properties(block).items()
    }


def test_acls_and_the_audit_log_as_the_page_shows_them(make_broker: MakeBroker, tmp_path: Path) -> None:
    properties = {**read_properties("ACLs"), **read_properties("The audit log")}
    # The tools run without authentication here, and the address that is refused is one of this machine.
    properties["super.users"] = "User:ANONYMOUS"
    properties["kafkacompat.audit.log"] = str(tmp_path / properties["kafkacompat.audit.log"])
    broker = make_broker(properties)
    outputs = []
    for line in "".join(list_blocks("ACLs", "sh")).splitlines():
        tool, *words = shlex.split(line.replace("localhost:9092", broker.bootstrap))
        assert tool == "kafka-acls.sh"
        outputs.append(run_java("org.apache.kafka.tools.AclCommand", words).stdout)
    added, listed = outputs[:5], outputs[5]
    assert all("Adding ACLs for resource" in output for output in added)
    assert "principal=User:carol, host=*, operation=DELETE, permissionType=DENY" in listed
    assert "principal=User:*, host=192.0.2.7, operation=ALL, permissionType=DENY" in listed


def test_a_refusal_is_in_the_audit_log(make_broker: MakeBroker, tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    broker = make_broker({**read_properties("ACLs"), "kafkacompat.audit.log": str(path)})
    with RawClient(broker.port, address=REFUSED_ADDRESS) as client:
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
        answer = client.call(wanted, MetadataResponse, 9)
    assert answer.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    until(path.exists)
    (command,) = list_blocks("The audit log", "sh")
    shown = subprocess.run(shlex.split(command), cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    line = json.loads(shown)
    assert (line["principal"], line["host"], line["api"]) == ("User:ANONYMOUS", REFUSED_ADDRESS, "Metadata")
    assert (line["operation"], line["resource"], line["allowed"]) == ("DESCRIBE", "orders", False)
    assert "Principal = User:ANONYMOUS is Denied operation = DESCRIBE" in broker.stderr()
