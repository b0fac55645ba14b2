"""The kinds of names and ids that messages carry; each field of a declaration that holds one says which (``entity=``).

Names differ between an instance's clients and the brokers. `kafkacompat.tenancy.mapping` builds the functions that translate
messages from the declarations, and `kafkacompat.tenancy.names` has the rule of each kind.
"""

from __future__ import annotations

TOPIC = "topic"
TOPIC_ID = "topicId"
GROUP = "group"
TRANSACTIONAL_ID = "transactionalId"
USER = "user"
PRINCIPAL = "principal"
"""A type and a name, as in ``User:alice``."""
CLUSTER = "cluster"
"""The id of the cluster."""
TOPIC_PATTERN = "topicPattern"
"""A regular expression for names of topics (KIP-848)."""
TRANSACTIONAL_ID_PATTERN = "transactionalIdPattern"
SUBSCRIPTION = "subscription"
"""The bytes of a classic group member's metadata."""
ASSIGNMENT = "assignment"
"""The bytes of a classic group member's assignment."""
LOG_DIRECTORY = "logDirectory"
CLIENT_INSTANCE = "clientInstance"
"""The id of a client that pushes metrics (KIP-714)."""
TEXT = "text"
"""A text for people, which may quote names."""

COORDINATOR_KEY = "coordinatorKey"
"""A group or a transactional id, by the request's key type."""
CONFIG_RESOURCE = "configResource"
"""The name of a resource with a configuration, by its type."""
ACL_RESOURCE = "aclResource"
"""The name of a resource in an access rule, by its type and the type of the pattern."""
NAME_FILTER = "nameFilter"
"""A name in a filter of access rules or quotas. It is not translated: the filter is applied to the names that clients know."""
QUOTA_ENTITY = "quotaEntity"
"""The name of a user, a client id or an address, by the type of the entity; null for the default."""

BROKER = "broker"
"""The id of a broker. It is the same for all instances."""

SIBLINGS = {
    COORDINATOR_KEY: ("key_type",),
    CONFIG_RESOURCE: ("resource_type",),
    ACL_RESOURCE: ("resource_type", "pattern_type"),
    QUOTA_ENTITY: ("entity_type",),
}
"""The fields beside a name that say what it is the name of. In a filter these have the suffix ``_filter``."""

ENTITIES = frozenset(
    {
        TOPIC,
        TOPIC_ID,
        GROUP,
        TRANSACTIONAL_ID,
        USER,
        PRINCIPAL,
        CLUSTER,
        TOPIC_PATTERN,
        TRANSACTIONAL_ID_PATTERN,
        SUBSCRIPTION,
        ASSIGNMENT,
        LOG_DIRECTORY,
        CLIENT_INSTANCE,
        TEXT,
        BROKER,
        NAME_FILTER,
        *SIBLINGS,
    }
)
