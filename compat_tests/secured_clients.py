"""aiokafka and franz-go over secured connections: each writes ten records, reads them back, and returns their values."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider

from compat_tests.brokers import ROOT
from compat_tests.matrix.install import build_go_program

COUNT = 10
FRANZ_GO = ("github.com/twmb/franz-go", "v1.22.2")
_SOURCE = ROOT / "compat_tests" / "go" / "secured_franz.go"
_PATIENCE_SECONDS = 60


class FixedToken(AbstractTokenProvider):  # type: ignore[misc]
    """Gives aiokafka the same bearer token each time."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def token(self) -> str:
        """See AbstractTokenProvider.token."""
        return self._text


def run_aiokafka(topic: str, settings: Mapping[str, Any]) -> list[bytes]:
    """Run a producer and a consumer of aiokafka; *settings* are those that both take."""

    async def copy() -> list[bytes]:
        async with AIOKafkaProducer(**settings) as producer:
            for number in range(COUNT):
                await producer.send_and_wait(topic, str(number).encode())
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
            return [(await consumer.getone()).value for _ in range(COUNT)]

    return asyncio.run(asyncio.wait_for(copy(), _PATIENCE_SECONDS))


def run_franz_go(topic: str, variables: Mapping[str, str]) -> list[bytes]:
    """Run the program of franz-go; *variables* are its settings, which `secured_franz.go` describes."""
    program = build_go_program([_SOURCE], *FRANZ_GO)
    environment = {**os.environ, "MECHANISM": "none", "TOPIC": topic, **variables}
    done = subprocess.run([program], env=environment, capture_output=True, timeout=_PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.split()
