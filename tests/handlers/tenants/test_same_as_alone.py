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
BETWEEN_BROKERS = {(24, 4), (24, 5), (27, 0), (27, 1), (27, 2)}
"""AddPartitionsToTxn and WriteTxnMarkers in versions for brokers: no user of an instance has the right to send these."""
POOLS: Pool = {
    entities.TOPIC: ["orders", "orders", "orders.eu", "a_b", "..", "Größe", "x" * 249, ""],
    entities.GROUP: ["g", "g", "h", "", "großes"],
    entities.TRANSACTIONAL_ID: ["tx", "tx", "ty", ""],
    entities.TOPIC_PATTERN: ["ord.*", "^orders$", "(", "", "a|b)", "(?i)ORD.*", r"\Qorders"],
    entities.TRANSACTIONAL_ID_PATTERN: ["t.*", "^tx$", "("],
    entities.COORDINATOR_KEY: ["g", "tx", ""],
    entities.TOPIC_ID: [b"?" * 16],
    entities.CONFIG_RESOURCE: ["orders", "g", "", "Größe"],
    entities.ACL_RESOURCE: ["orders", "g", "tx", "*", "ord", "kafka-cluster"],
    entities.PRINCIPAL: ["User:alice", "User:*", "User:bob"],
    entities.USER: ["alice", "bob", ""],
    entities.QUOTA_ENTITY: ["alice", "bob"],
    entities.NAME_FILTER: ["orders", "g", "tx", "*", "User:alice", "User:*", "alice"],
    "resource_type_filter": [1, 2, 3, 4, 5],
    "pattern_type_filter": [1, 2, 3, 4],
    "resource_pattern_type": [3, 3, 4],
    "operation": [2, 3, 4],
    "permission_type": [2, 3],
    "member_id": ["", "nobody"],
    "producer_id": [-1, -1, 77],
    "producer_id_filters": [77],
    "session_id": [0, 0, 5],
    # A client of an instance is no replica.
    "replica_id": [-1],
    # The configurations of brokers and the quotas of addresses are the operator's.
    "resource_type": [0, 2, 2, 3, 5, 32],
    "resource_types": [2, 32, 3],
    "entity_type": ["user", "client-id", "", "text"],
    # The page of a lone broker has its internal topics.
    "response_partition_limit": [2000],
}


@pytest.mark.parametrize(("seed", "guarded"), [(1, False), (2, True)])
def test_an_instance_answers_as_a_lone_broker(tmp_path: Path, seed: int, guarded: bool) -> None:
    shared, lone = (World(tmp_path / name, guarded=guarded) for name in ("shared", "lone"))
    for name in ("shop", "other"):
        shared.make_instance(name)
    # With an authorizer, other types than groups and transactions need rights of brokers.
    pools: Pool = {**POOLS, "key_type": [0, 1]} if guarded else POOLS
    tenant, neighbour, alone = Player(shared, "shop", pools), Player(shared, "other", pools), Player(lone, None, pools)
    rng = Random(seed)
    keys = [key for key in TENANT_APIS if key != API_VERSIONS]
    answered = set()
    for _ in range(REQUESTS):
        key, request_seed = rng.choice(keys), rng.getrandbits(32)
        version = rng.choice(list(Versions.parse(SERVED[key])))
        if guarded and (key, version) in BETWEEN_BROKERS:
            continue
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
    assert answered >= set(keys) - {key for key, _ in BETWEEN_BROKERS}
    shared.stop()
    lone.stop()
