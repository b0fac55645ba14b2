"""A client of one instance tries to reach, change or notice what is not its instance's, by requests of every API and version.

It sends the same requests to two worlds. In one there are another instance and things of the operator, in the other nothing. The
answers must be the same, what the others have must not change, and no answer may hold a secret of theirs.

``python -m tests.handlers.tenants.attacks --requests 100000 --seed 1`` makes a long attack.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from copy import deepcopy
from pathlib import Path
from random import Random

from kafkacompat.handlers import SERVED, SERVED_BETWEEN_BROKERS, SERVED_WITH_TELEMETRY
from kafkacompat.wire import entities
from kafkacompat.wire.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.schema import Request, Versions
from tests.handlers.tenants.hostile import Pool
from tests.handlers.tenants.player import Player, find_difference
from tests.handlers.tenants.victim import CLUSTER_ID, SECRET, VICTIM, Victim
from tests.handlers.tenants.world import World

ATTACKER = "attackerq7"
BEATS_EVERY = 5
LOOKS_EVERY = 50
MAX_FINDINGS = 20
ALL_SERVED = SERVED | SERVED_WITH_TELEMETRY | SERVED_BETWEEN_BROKERS

_NAMES = [
    "",
    "orders",
    "orders",
    "victim.orders",
    "victim.",
    "victim",
    ".victim.orders",
    "../victim.orders",
    "..",
    "victim\u2024orders",
    "victim\uff0eorders",
    "VICTIM.orders",
    "victim.orders\0",
    "victim.orders\n",
    "victim_orders",
    "!victim.orders",
    "!",
    "*",
    "__consumer_offsets",
    "__transaction_state",
    "victim.*",
    "x" * 249,
    f"{'x' * 200}.{'y' * 48}",
]
_IDS = [
    "",
    "g",
    "g",
    "classic",
    "new",
    "tx",
    "tx",
    "victim.g",
    "victim.classic",
    "victim.new",
    "victim.tx",
    "victim.",
    "*",
]
_PATTERNS = [
    ".*",
    "^.*$",
    "x)|(?:victim.*",
    ".*)|(?:.*",
    "^victim\\..*",
    "victim\\..*|orders",
    "(?i)VICTIM.*",
    "(?s).*",
    "\\Qvictim.",
    "\\E)|(?:victim.*",
    "[^a]*",
    "\\Avictim",
    "(",
    "",
]
POOLS: Pool = {
    entities.TOPIC: _NAMES,
    entities.GROUP: _IDS,
    entities.TRANSACTIONAL_ID: _IDS,
    entities.COORDINATOR_KEY: _IDS,
    entities.TOPIC_PATTERN: _PATTERNS,
    entities.TRANSACTIONAL_ID_PATTERN: _PATTERNS,
    entities.TOPIC_ID: [b"?" * 16],
    entities.CLUSTER: ["", "any"],
    entities.LOG_DIRECTORY: ["/", "/kafkacompat", "/tmp"],
    entities.USER: ["alice", "victim.alice", "*", ""],
    entities.PRINCIPAL: [
        "User:alice",
        "User:victim.alice",
        "User:*",
        "User:victim.",
        "Group:victim.alice",
        "victim.alice",
    ],
    entities.CONFIG_RESOURCE: [*_NAMES, "g", "1", VICTIM, ATTACKER],
    entities.ACL_RESOURCE: [*_NAMES, *_IDS, "kafka-cluster", "victim.kafka-cluster"],
    entities.QUOTA_ENTITY: ["alice", "victim.alice", "victim.", "127.0.0.1"],
    "nameFilter": [*_NAMES, *_IDS, "User:alice", "User:victim.alice", "User:*", "alice", "victim.alice"],
    "resource_type": [2, 2, 4, 8, 16, 32, 100, 0],
    "resource_type_filter": [1, 2, 3, 4, 5, 6, 7],
    "pattern_type_filter": [1, 2, 3, 4],
    "resource_pattern_type": [3, 3, 4, 1],
    "entity_type": ["user", "client-id", "ip", "instance"],
    "member_id": ["", "nobody"],
    "producer_id": [-1, -1],
    "session_id": [0],
}


class Attack:
    """Two worlds and the attacker in both; ``findings`` says what went wrong, and ``requests`` counts."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._rng = Random(seed)
        self.findings: list[str] = []
        self.requests = 0
        # Random ids differ, so that none of the victim's is the attacker's own in the world without the victim.
        self._with, self._without = (
            World(folder / name, place, guarded=seed % 2 == 0) for place, name in enumerate(("with", "without"))
        )
        self._with.make_instance(VICTIM, cluster_id=CLUSTER_ID)
        # A topic of the operator that differs from one of the attacker's only in a sign that metrics do not tell from a dot.
        self._victims = [Victim(self._with, VICTIM), Victim(self._with, None, f"{ATTACKER}_orders")]
        for world in (self._with, self._without):
            world.make_instance(ATTACKER)
        pools = {kind: list(values) for kind, values in POOLS.items()}
        for victim in self._victims:
            for kind, values in victim.list_known().items():
                pools[kind] += values
        pools["producer_id_filters"] = pools["producer_id"]
        self._attacker, self._shadow = (
            Player(world, ATTACKER, pools, hidden=()) for world in (self._with, self._without)
        )
        for _ in self._victims:
            # The ids of the victim's producers must not become the attacker's own in the world without the victim.
            self._without.ask(None, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 3)
        self._physical_id = self._with.broker.cluster_id.encode()
        self._before = [victim.take_snapshot() for victim in self._victims]

    def run(self, requests: int) -> None:
        """Send this many requests, unless too much goes wrong."""
        keys = list(ALL_SERVED)
        self._subscribe_by_patterns()
        for count in range(requests):
            self._send(self._rng.choice(keys))
            if count % BEATS_EVERY == 0:
                for victim in self._victims:
                    victim.beat()
            if count % LOOKS_EVERY == 0 or count == requests - 1:
                self._look()
            if len(self.findings) >= MAX_FINDINGS:
                return

    def _send(self, key: int) -> None:
        version, seed = self._rng.choice(list(Versions.parse(ALL_SERVED[key]))), self._rng.getrandbits(32)
        request, same = (player.make(key, version, seed) for player in (self._attacker, self._shadow))
        self._compare(request, same, version)
        self.requests += 1

    def _subscribe_by_patterns(self) -> None:
        """Join groups by patterns, as made-up requests seldom do that."""
        for number, pattern in enumerate(_PATTERNS):
            group = f"group {number}"
            joining = ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id="member",
                rebalance_timeout_ms=1000,
                subscribed_topic_names=[],
                subscribed_topic_regex=pattern,
                topic_partitions=[],
            )
            describing = ConsumerGroupDescribeRequest(group_ids=[group])
            for request in (joining, describing):
                self._compare(request, deepcopy(request), 1)

    def _compare(self, request: Request, same: Request, version: int) -> None:
        """Send the same request to both worlds, and compare the answers."""
        self._with.keep_pace(self._without)
        asked = f"{request!r} v{version}"
        data, form = self._attacker.send(request, version)
        expected = self._shadow.send(same, version)[1]
        if difference := find_difference(form, expected):
            self.findings.append(f"{asked} notices the victim: {difference}")
        for secret in (SECRET.encode(), f"{ATTACKER}.".encode(), self._physical_id):
            if data is not None and secret in data:
                self.findings.append(f"{asked} shows {secret!r}")

    def _look(self) -> None:
        for victim, before in zip(self._victims, self._before, strict=True):
            after = victim.take_snapshot()
            for kind in before:
                if after[kind] != before[kind]:
                    self.findings.append(f"after {self.requests} requests: {kind} {before[kind]} became {after[kind]}")
                    before[kind] = after[kind]

    def stop(self) -> None:
        """Stop both brokers."""
        self._with.stop()
        self._without.stop()


def main() -> int:
    """Make an attack, and print what it finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    left, seed = given.requests, given.seed
    findings: list[str] = []
    while left > 0:
        with tempfile.TemporaryDirectory() as folder:
            attack = Attack(Path(folder), seed)
            attack.run(min(left, 2000))
            attack.stop()
        findings += [f"seed {seed}: {finding}" for finding in attack.findings]
        left, seed = left - attack.requests, seed + 1
    print("\n".join(findings) or f"{given.requests} requests found nothing")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
