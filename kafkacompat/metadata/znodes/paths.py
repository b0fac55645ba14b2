"""The paths of all znodes that Kafka 2.8 to 3.9 keeps in ZooKeeper, in one table.

Names of users, client ids, IP addresses and groups are percent-encoded as Kafka does it, see `encode_name`. Topics, broker ids and
client metrics subscriptions have names that a path may hold as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from urllib.parse import quote, unquote_plus

from kafkacompat.metadata.store import StoreError

DEFAULT_NAME = "<default>"
"""Name of the znode whose configs apply to all entities that have none of their own."""


class Znode(Enum):
    """A kind of znode by its path; braces enclose the names that differ from znode to znode.

    A path that ends in ``{sequence}`` is created as a sequential znode: ZooKeeper appends ten digits to the prefix.
    """

    CONTROLLER = "/controller"
    CONTROLLER_EPOCH = "/controller_epoch"
    CLUSTER_ID = "/cluster/id"
    BROKER_IDS = "/brokers/ids"
    BROKER = "/brokers/ids/{node_id}"
    BROKER_SEQUENCE = "/brokers/seqid"
    TOPICS = "/brokers/topics"
    TOPIC = "/brokers/topics/{topic}"
    PARTITIONS = "/brokers/topics/{topic}/partitions"
    PARTITION = "/brokers/topics/{topic}/partitions/{partition}"
    PARTITION_STATE = "/brokers/topics/{topic}/partitions/{partition}/state"
    CONFIG_CHANGES = "/config/changes"
    CONFIG_CHANGE = "/config/changes/config_change_{sequence}"
    CONFIG_KIND = "/config/{kind}"
    CONFIG = "/config/{kind}/{name}"
    CLIENTS_OF_USER = "/config/users/{user}/clients"
    CLIENT_OF_USER = "/config/users/{user}/clients/{client_id}"
    FEATURE = "/feature"
    DELETED_TOPICS = "/admin/delete_topics"
    DELETED_TOPIC = "/admin/delete_topics/{topic}"
    PREFERRED_ELECTION = "/admin/preferred_replica_election"
    REASSIGNMENT = "/admin/reassign_partitions"
    ISR_CHANGES = "/isr_change_notification"
    ISR_CHANGE = "/isr_change_notification/isr_change_{sequence}"
    LOG_DIR_EVENTS = "/log_dir_event_notification"
    LOG_DIR_EVENT = "/log_dir_event_notification/log_dir_event_{sequence}"
    PRODUCER_IDS = "/latest_producer_id_block"
    TOKENS = "/delegation_token/tokens"
    TOKEN = "/delegation_token/tokens/{token_id}"
    TOKEN_CHANGES = "/delegation_token/token_changes"
    TOKEN_CHANGE = "/delegation_token/token_changes/token_change_{sequence}"
    ACLS_OF_TYPE = "/kafka-acl/{resource_type}"
    ACLS = "/kafka-acl/{resource_type}/{name}"
    ACL_CHANGES = "/kafka-acl-changes"
    ACL_CHANGE = "/kafka-acl-changes/acl_changes_{sequence}"
    EXTENDED_ACLS_OF_TYPE = "/kafka-acl-extended/{pattern_type}/{resource_type}"
    EXTENDED_ACLS = "/kafka-acl-extended/{pattern_type}/{resource_type}/{name}"
    EXTENDED_ACL_CHANGES = "/kafka-acl-extended-changes"
    EXTENDED_ACL_CHANGE = "/kafka-acl-extended-changes/acl_changes_{sequence}"
    CONSUMERS = "/consumers"
    CONSUMER_OFFSET = "/consumers/{group}/offsets/{topic}/{partition}"
    CONSUMER_OWNER = "/consumers/{group}/owners/{topic}/{partition}"
    CONSUMER = "/consumers/{group}/ids/{consumer_id}"
    MIGRATION = "/migration"

    def path(self, **names: object) -> str:
        """Build the path of one znode; an empty ``sequence`` builds the prefix of a sequential znode."""
        return self.value.format(**names)

    def match(self, path: str) -> Mapping[str, str] | None:
        """Return the names in a path of this kind, or None for a path of another kind."""
        match = _PATTERNS[self].fullmatch(path)
        return match and match.groupdict()


CONFIG_KINDS = ("topics", "clients", "users", "brokers", "ips")
"""The kinds of entities whose configs Kafka keeps in ZooKeeper."""

OWN_CONFIG_KINDS = ("groups", "client-metrics", "instances")
"""Further kinds: Kafka keeps the first two in ZooKeeper's successor only, and knows no instances."""

PERSISTENT_PATHS = (
    *(
        znode.value
        for znode in (
            Znode.CONSUMERS,
            Znode.BROKER_IDS,
            Znode.TOPICS,
            Znode.CONFIG_CHANGES,
            Znode.DELETED_TOPICS,
            Znode.BROKER_SEQUENCE,
            Znode.ISR_CHANGES,
            Znode.PRODUCER_IDS,
            Znode.LOG_DIR_EVENTS,
        )
    ),
    *(Znode.CONFIG_KIND.path(kind=kind) for kind in CONFIG_KINDS),
)
"""The paths that a broker creates at its start, in this order, with their parents and without values, where they are missing."""

TOKEN_PATHS = (Znode.TOKEN_CHANGES.value, Znode.TOKENS.value)
"""The paths of delegation tokens. A broker creates them with delegation.token.secret.key."""

_ACL_TYPES = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")

ACL_PATHS = (
    *(Znode.ACLS_OF_TYPE.path(resource_type=name) for name in _ACL_TYPES),
    *(Znode.EXTENDED_ACLS_OF_TYPE.path(pattern_type="prefixed", resource_type=name) for name in _ACL_TYPES),
    Znode.ACL_CHANGES.value,
    Znode.EXTENDED_ACL_CHANGES.value,
)
"""The paths that a broker with an authorizer also creates."""


def _compile_template(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template)))


_PATTERNS = {znode: _compile_template(znode.value) for znode in Znode}
# Within a depth the order of the table counts: /config/changes is no CONFIG_KIND.
_BY_DEPTH = {
    depth: [znode for znode in Znode if znode.value.count("/") == depth]
    for depth in {znode.value.count("/") for znode in Znode}
}


def identify_path(path: str) -> tuple[Znode, Mapping[str, str]] | None:
    """Find the kind of znode that a path belongs to, and the names in the path; None for a path that is not Kafka's."""
    for znode in _BY_DEPTH.get(path.count("/"), ()):
        if (names := znode.match(path)) is not None:
            return znode, names
    return None


def parse_sequence_number(znode: Znode, path: str) -> int:
    """Return the number that ZooKeeper appended to a sequential znode; raises StoreError.

    The number is negative after 2,147,483,647 changes, as ZooKeeper counts in an int32.
    """
    names = znode.match(path)
    if names is None or not re.fullmatch("-?[0-9]{10}", names["sequence"]):
        raise StoreError(f"{path} is not a sequential znode like {znode.value}; delete it")
    return int(names["sequence"])


def encode_name(name: str) -> str:
    """Percent-encode the name of a user, a client id, an IP address or a group, as Kafka's class Sanitizer does.

    Kafka cannot store the names '.' and '..', which no path may hold; they are encoded here, and Kafka can decode them.
    """
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return quote(name, safe="").replace("~", "%7E")


def decode_name(name: str) -> str:
    """Decode a name that `encode_name` or Kafka encoded; '+' is a space, as in Kafka."""
    return unquote_plus(name)


# The characters that ZooKeeper refuses in a path, and those that separate or encode names.
_NOT_IN_PATH = re.compile("[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff/%]")


def encode_group(group_id: str) -> str:
    """Encode a group's id for a path below /consumers.

    Kafka writes the id as it is, and so does this function, unless the id has a character that ZooKeeper refuses, a '/' or a '%'.
    Two groups never share a path.
    """
    if not group_id:
        return "%"
    return encode_name(group_id) if group_id in (".", "..") or _NOT_IN_PATH.search(group_id) else group_id
