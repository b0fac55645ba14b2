"""Raw produce with an authorizer: without rules, with 1,000 and with 100,000, beside the same broker without an authorizer."""

from __future__ import annotations

from collections.abc import Sequence

from bench.row import Goal, Options, Row, Samples
from bench.rows.produce import run_load
from compat_tests.brokers import Broker
from compat_tests.raw_client import RawClient
from kafkacompat.security.acls.model import CLUSTER_NAME, AclOperation, AclPermission, AclResourceType, PatternType
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse

REQUESTS = 4000
WARM_UP_REQUESTS = 800
RULES_AT_ONCE = 1000
STAGES = (0, 1_000, 100_000)

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Until there are rules, and for what none of them names.
    "allow.everyone.if.no.acl.found": "true",
}


def measure(broker: Broker, options: Options) -> Samples:
    """Produce to a broker without an authorizer and to one with it, in turn, at each number of rules."""
    plain = type(broker)(broker.folder.with_name(f"{broker.folder.name}-plain"), _without_authorizer(broker.properties))
    samples: Samples = {}
    with broker, plain:
        for warmed_broker in (plain, broker):
            run_load(warmed_broker, options.count(WARM_UP_REQUESTS))
        made = 0
        for count in STAGES:
            made = _create_rules(broker, made, options.count(count) if count else 0)
            without = run_load(plain, options.count(REQUESTS))
            with_rules = run_load(broker, options.count(REQUESTS))
            samples[f"records/s with {count} rules"] = with_rules["records/s"]
            samples[f"share at {count} rules"] = with_rules["records/s"] / without["records/s"]
            samples[f"CPU share at {count} rules"] = (
                with_rules["broker CPU s per million records"] / without["broker CPU s per million records"]
            )
        samples["resident MB with all rules"] = with_rules["resident MB"]
    return samples


def _without_authorizer(properties: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name not in PROPERTIES}


def _create_rules(broker: Broker, made: int, wanted: int) -> int:
    """Create rules until there are *wanted*; returns their number. The first ones let the load's client do everything."""
    rules = [_build_rule(number) for number in range(made, wanted)]
    if rules and not made:
        rules = [*_list_own_rules(), *rules]
    with RawClient(broker.port, timeout_seconds=120) as client:
        for start in range(0, len(rules), RULES_AT_ONCE):
            _send_rules(client, rules[start : start + RULES_AT_ONCE])
    return max(made, wanted)


def _send_rules(client: RawClient, rules: Sequence[AclCreation]) -> None:
    created = client.call(CreateAclsRequest(creations=list(rules)), CreateAclsResponse, 3)
    assert not any(result.error_code for result in created.results), created


def _list_own_rules() -> list[AclCreation]:
    return [
        AclCreation(
            resource_type=kind,
            resource_name=CLUSTER_NAME if kind is AclResourceType.CLUSTER else "*",
            resource_pattern_type=PatternType.LITERAL,
            principal="User:ANONYMOUS",
            host="*",
            operation=AclOperation.ALL,
            permission_type=AclPermission.ALLOW,
        )
        for kind in (AclResourceType.TOPIC, AclResourceType.CLUSTER)
    ]


def _build_rule(number: int) -> AclCreation:
    """Build a rule of some application: each has a user, and topics that begin with its name; one in ten is denied something."""
    is_prefix = number % 2 == 0
    return AclCreation(
        resource_type=AclResourceType.TOPIC,
        resource_name=f"application-{number // 4}-{'' if is_prefix else number % 4}",
        resource_pattern_type=PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        principal=f"User:application-{number // 4}",
        host="*",
        operation=AclOperation.READ if number % 4 < 2 else AclOperation.WRITE,
        permission_type=AclPermission.DENY if number % 10 == 9 else AclPermission.ALLOW,
    )


ROWS = [
    Row(
        "acls",
        "Raw produce with access rules",
        "The load of raw produce on a broker with an authorizer, with 0, 1,000 and 100,000 rules, and beside it on one without. "
        "A share is the ratio of the two, run one after the other.",
        measure,
        [
            Goal("share at 1000 rules", 0.95, at_least=True, is_ratio=False),
            Goal("share at 100000 rules", 0.8, at_least=True, is_ratio=False),
        ],
        properties=PROPERTIES,
        fresh=True,
    ),
]
