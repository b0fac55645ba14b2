"""A worker of Kafka Connect, distributed, and its REST API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from compat_tests.brokers import Broker
from compat_tests.frameworks.programme import start_java, write_properties
from compat_tests.ports import free_port
from compat_tests.waiting import until

STRING = "org.apache.kafka.connect.storage.StringConverter"
ANSWER_SECONDS = 60
REBALANCE_SECONDS = 120


class Worker:
    """One Connect worker and its REST API.

    Its connectors are those of Kafka, those in the folders below *plugins*, and those of the Java file *source*.
    """

    def __init__(
        self, broker: Broker, group: str, folder: Path, plugins: Path | None = None, source: Path | None = None
    ) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        properties = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "listeners": self._url,
            "key.converter": STRING,
            "value.converter": STRING,
            # Killed workers and sinks are missed after six seconds and not after ten and 45.
            **{f"{whose}session.timeout.ms": "6000" for whose in ("", "consumer.")},
            **{f"{whose}heartbeat.interval.ms": "1000" for whose in ("", "consumer.")},
            # The tasks of a worker that left are reassigned at once, not after five minutes.
            "scheduled.rebalance.max.delay.ms": "0",
            "offset.flush.interval.ms": "500",
            **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")},
            **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
            "offset.storage.partitions": "3",
            "status.storage.partitions": "3",
            # The connectors that the jars list are loaded; by default Connect searches all their classes.
            **({"plugin.path": str(plugins), "plugin.discovery": "service_load"} if plugins else {}),
        }
        folder.mkdir()
        file = write_properties(folder / "worker.properties", properties)
        main_class = "org.apache.kafka.connect.cli.ConnectDistributed"
        self.programme = start_java(main_class, [str(file)], folder / "log", heap="512m", source=source)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send one request and return the body of its answer; raises HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def is_refused(self, method: str, path: str, code: int, body: object = None) -> bool:
        """Whether the request is answered with this code."""
        try:
            self.ask(method, path, body)
        except urllib.error.HTTPError as problem:
            return problem.code == code
        return False

    def serves(self) -> bool:
        """Whether the worker is in the group: it answers 500 or nothing before."""
        try:
            return isinstance(self.get("/connectors"), list)
        except OSError:
            return False

    def put(self, connector: str, config: Mapping[str, str]) -> None:
        """Create a connector or change its settings, as soon as no rebalance is on."""
        path = f"/connectors/{connector}/config"
        # 409: a rebalance is on.
        until(lambda: not self.is_refused("PUT", path, HTTPStatus.CONFLICT, {"tasks.max": "1", **config}))

    def states(self, connector: str) -> list[str]:
        """Return the state of a connector and of its tasks; none while it is unknown."""
        try:
            status = self.get(f"/connectors/{connector}/status")
        except urllib.error.HTTPError:
            return []
        return [part["state"] for part in (status["connector"], *status["tasks"])]


NewWorker = Callable[..., Worker]
