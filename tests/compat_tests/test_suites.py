"""How the results of public suites are read, and what stands for Kafka's tools in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.suites.acl_command import build_request
from compat_tests.suites.results import FAILED, KNOWN, PASSED, SKIPPED, Outcome, count, list_reasons, read_outcomes
from compat_tests.suites.sources import MissingSourceError, fetch_aiokafka
from kafkacompat.security.acls.model import AclOperation, AclPermission, AclResourceType
from kafkacompat.wire.apis.create_acls import CreateAclsRequest
from kafkacompat.wire.apis.delete_acls import DeleteAclsRequest

REPORT = """<testsuites><testsuite>
<testcase classname="test.test_a" name="test_good"/>
<testcase classname="test.test_a" name="test_bad"><failure message="assert 1 == 2&#10; more">trace</failure></testcase>
<testcase classname="test.test_a" name="test_known"><failure message="as expected"/></testcase>
<testcase classname="test.test_a" name="test_old"><skipped message="needs Kafka 0.8"/></testcase>
<testcase classname="test.test_a" name="test_end"/>
<testcase classname="test.test_a" name="test_end"><error message="the end fails"/></testcase>
</testsuite></testsuites>"""


def test_outcomes_have_reasons(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    outcomes = read_outcomes(report, {"test_known": "a reason"})
    assert count(outcomes) == {PASSED: 1, FAILED: 2, KNOWN: 1, SKIPPED: 1}
    assert [outcome.reason for outcome in outcomes if outcome.result == FAILED] == ["assert 1 == 2", "the end fails"]
    assert list(list_reasons(outcomes, KNOWN)) == [("a reason", 1)]
    assert Outcome("test.test_a::test_good", PASSED) in outcomes


def test_kafka_acls_adds_and_removes_rules() -> None:
    add = ["--force", "--add", "--topic", "orders", "--allow-principal", "User:ann", "--producer"]
    request = build_request(add)
    assert isinstance(request, CreateAclsRequest)
    assert {(rule.resource_type, rule.operation) for rule in request.creations} == {
        (AclResourceType.TOPIC, operation)
        for operation in (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
    }
    remove = ["--remove", "--cluster", "--group", "g", "--deny-principal", "User:bob", "--operation", "Describe"]
    removal = build_request(remove)
    assert isinstance(removal, DeleteAclsRequest)
    assert {(rule.resource_type_filter, rule.permission_type) for rule in removal.filters} == {
        (kind, AclPermission.DENY) for kind in (AclResourceType.CLUSTER, AclResourceType.GROUP)
    }
    assert build_request(["--list"]) is None


def test_a_suite_without_sources_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingSourceError, match="name the folder by --aiokafka"):
        fetch_aiokafka(None)
