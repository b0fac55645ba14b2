"""What docs/SECURITY.md shows about certificates and TLS works as it stands there."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.internet.task import Clock

from compat_tests.brokers import ROOT
from compat_tests.page_blocks import PageRun, find_blocks, find_section
from compat_tests.ports import free_port
from compat_tests.waiting import until
from kafkacompat.config import BrokerConfig
from kafkacompat.security.tls.listeners import TlsListeners
from kafkacompat.storage.files.operating_system import OsFiles

PAGE = (ROOT / "docs" / "SECURITY.md").read_text()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageRun]:
    run = PageRun(tmp_path, {"9093": str(free_port())})
    yield run
    run.stop()


def test_certificates_and_tls_as_the_page_shows_them(page: PageRun, monkeypatch: pytest.MonkeyPatch) -> None:
    keytool = ["keytool", "-genkeypair", "-keyalg", "RSA", "-alias", "a", "-dname", "CN=x", "-storetype", "JKS"]
    passwords = ["-keystore", "broker.jks", "-storepass", "change-me", "-keypass", "change-me"]
    subprocess.run([*keytool, *passwords], cwd=page.folder, check=True, capture_output=True)
    for block in (*find_blocks(find_section(PAGE, "Make certificates")), *find_blocks(find_section(PAGE, "TLS"))):
        page.run(block)
    until(lambda: "Replaced the certificate of listener SSL: CN=broker-1" in page.log)
    assert "Traceback" not in page.log
    assert (page.folder / "broker.p12").exists()
    # The last file is of a cluster, whose ZooKeeper is not there: its certificates are loaded all the same.
    config = BrokerConfig.load((page.folder / "broker-1.properties").read_text())
    monkeypatch.chdir(page.folder)
    listeners = TlsListeners(OsFiles(), Clock(), config.inter_broker_listener.name)
    assert {listeners.open(config, listener).name for listener in config.listeners} == {"CLIENTS", "BROKERS"}
