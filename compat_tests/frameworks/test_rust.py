"""The StreamConsumer of Rust's rdkafka crate: a transactional job from topic to topic, killed in the middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.frameworks.copying import check_killed_copy
from compat_tests.frameworks.programme import FOLDER, Programme
from compat_tests.matrix.install import build_rust_program, require_rdkafka

pytestmark = pytest.mark.frameworks

SOURCE = FOLDER / "rust" / "stream_job.rs"
CRATES = {
    "rdkafka": require_rdkafka("0.39.0", "tokio"),
    "tokio": '{ version = "1", features = ["rt-multi-thread", "macros", "signal"] }',
    "futures": '"0.3"',
}


def test_stream_consumer(broker: Broker, name: str, tmp_path: Path) -> None:
    command = [str(build_rust_program([SOURCE], CRATES)), broker.bootstrap, name]
    check_killed_copy(broker, name, lambda: Programme(command, tmp_path / "log"))
