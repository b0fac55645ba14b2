"""To its clients an instance is a whole Kafka: it answers as a broker without instances does, beside another one with the same names."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kafkacompat.handlers import SERVED
from kafkacompat.handlers.tenants.table import TENANT_APIS
from kafkacompat.wire import entities
from kafkacompat.wire.schema import Versions
from tests.handlers.tenants.hostile import Pool
from tests.handlers.tenants.player import Player, find_difference
from tests.handlers.tenants.world import World

API_VERSIONS = 18
REQUESTS = 1200
POOLS: Pool = {
    entities.TOPIC: ["orders", "orders", "orders.eu", "a_b", "..", "Größe", "x" * 249, ""],
    entities.GROUP: ["g", "g", "h", "", "großes"],
    entities.TRANSACTIONAL_ID: ["tx", "tx", "ty", ""],
    entities.TOPIC_PATTERN: ["ord.*", "^orders$", "(", "", "a|b)", "(?i)ORD.*", r"\Qorders"],
    entities.TRANSACTIONAL_ID_PATTERN: ["t.*", "^tx$", "("],
    entities.COORDINATOR_KEY: ["g", "tx", ""],
    entities.TOPIC_ID: [b"?" * 16],
    "member_id": ["", "nobody"],
    "producer_id": [-1, -1, 77],
    "producer_id_filters": [77],
    "session_id": [0, 0, 5],
    # A client of an instance is no replica.
    "replica_id": [-1],
    # The configurations of brokers and the quotas of addresses are the operator's.
    "resource_type": [0, 2, 2, 3, 32],
    "resource_types": [2, 32, 3],
    "entity_type": ["user", "client-id", "", "text"],
    # The page of a lone broker has its internal topics.
    "response_partition_limit": [2000],
}


@pytest.mark.parametrize("seed", [1, 2])
def test_an_instance_answers_as_a_lone_broker(tmp_path: Path, seed: int) -> None:
    shared, lone = World(tmp_path / "shared"), World(tmp_path / "lone")
    for name in ("shop", "other"):
        shared.make_instance(name)
    tenant, neighbour, alone = Player(shared, "shop", POOLS), Player(shared, "other", POOLS), Player(lone, None, POOLS)
    rng = Random(seed)
    keys = [key for key in TENANT_APIS if key != API_VERSIONS]
    answered = set()
    for _ in range(REQUESTS):
        key, request_seed = rng.choice(keys), rng.getrandbits(32)
        version = rng.choice(list(Versions.parse(SERVED[key])))
        shared.keep_pace(lone)
        neighbour.send(neighbour.make(key, version, request_seed + 1), version)
        shared.keep_pace(lone)
        request = tenant.make(key, version, request_seed)
        asked = repr(request)
        data, form = tenant.send(request, version)
        expected = alone.send(alone.make(key, version, request_seed), version)[1]
        assert not (difference := find_difference(form, expected)), f"v{version} of {asked}: {difference}"
        if data is not None:
            answered.add(key)
    assert answered == set(keys)
    shared.stop()
    lone.stop()
