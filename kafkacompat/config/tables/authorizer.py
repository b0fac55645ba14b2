"""Access rules: the properties of Kafka's authorizers, which are no properties of its brokers, and the audit log.

Name, type, default, allowed values, flags and one line of text; `tables/__init__.py` explains the columns.
"""

TABLE = """
super.users | string | | | U | The users that may do everything, as User:alice;User:bob
allow.everyone.if.no.acl.found | boolean | false | | U | Everybody may do everything with a resource that no access rule names
kafkacompat.audit.log | string | null | | U | The file that records each refused operation, as JSON lines
kafkacompat.audit.log.allowed | boolean | false | | U | The file also records each allowed operation
kafkacompat.audit.log.max.bytes | long | 67108864 | 1024.. | U | The size at which the file is renamed, and a new one begun
kafkacompat.audit.log.files | int | 5 | 2.. | U | The files that are kept, the current one included
"""
