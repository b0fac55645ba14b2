"""What docs/SECURITY.md shows about users, OAuth and delegation tokens works as it stands there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests import page_blocks
from compat_tests.brokers import ROOT
from compat_tests.page_blocks import PageRun, find_blocks, find_section
from compat_tests.ports import free_port
from kafkacompat.config import BrokerConfig
from kafkacompat.security.sasl.client import ClientLogin
from kafkacompat.security.sasl.login_settings import read_login_settings

PAGE = (ROOT / "docs" / "SECURITY.md").read_text()
TOKEN_TOOL = "org.apache.kafka.tools.DelegationTokenCommand"

RunSections = Callable[..., PageRun]


@pytest.fixture
def run_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunSections]:
    """Run the blocks of sections in one folder, with `kafkacompat` as this source tree has it."""
    command = tmp_path / "bin" / "kafkacompat"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m kafkacompat "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setitem(page_blocks._TOOLS, "kafka-delegation-tokens.sh", TOKEN_TOOL)
    folder = tmp_path / "page"
    folder.mkdir()
    run = PageRun(folder, {"9094": str(free_port()), "9095": str(free_port())})

    def run_all(*titles: str) -> PageRun:
        for title in titles:
            for block in find_blocks(find_section(PAGE, title)):
                run.run(block)
        return run

    yield run_all
    run.stop()


def test_users_and_tokens_as_the_page_shows_them(run_sections: RunSections) -> None:
    page = run_sections("Users and passwords", "Delegation tokens")
    assert "Traceback" not in page.log and "password" not in page.log
    config = BrokerConfig.load((page.folder / "broker-1.properties").read_text())
    login = read_login_settings(config, "SECURED", config.string("sasl.mechanism.inter.broker.protocol"))
    assert isinstance(login, ClientLogin)
    assert (login.mechanism, login.username) == ("SCRAM-SHA-512", "broker")


def test_oauth_as_the_page_shows_it(run_sections: RunSections) -> None:
    page = run_sections("OAuth")
    assert "Traceback" not in page.log and (page.folder / "alice.token").read_text() not in page.log
