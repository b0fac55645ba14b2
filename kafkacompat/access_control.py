"""The authorizer of a broker, built from its properties, and the log of what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacompat.security.acls.audit import AttemptLog, AuditFile, AuditLog
from kafkacompat.security.acls.authorizer import Authorizer, parse_super_users

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.disk import Disk
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.timers import Clock


class AccessControl:
    """``authorizer`` decides by the rules of the metadata; ``audit`` is None without kafkacompat.audit.log."""

    def __init__(
        self, config: BrokerConfig, metadata: ImageHolder, clock: Clock, find_disk: Callable[[], Disk]
    ) -> None:
        path = config.optional_string("kafkacompat.audit.log")
        self.audit: AuditLog | None = None
        if path:
            file = AuditFile(
                path, config.int("kafkacompat.audit.log.max.bytes"), config.int("kafkacompat.audit.log.files")
            )
            self.audit = AuditLog(file, find_disk(), clock)
        self.authorizer = Authorizer(
            lambda: metadata.image.acls,
            parse_super_users(config.string("super.users")),
            allows_by_default=config.bool("allow.everyone.if.no.acl.found"),
        )
        self.authorizer.observer = AttemptLog(clock, self.audit)
        self.authorizer.notes_allowed = self.audit is not None and config.bool("kafkacompat.audit.log.allowed")

    def follow(self, instances: Instances) -> None:
        """Let the super users of each instance do everything in it; to be called after each change of instances."""
        if self.authorizer.instances is None:
            # A broker without instances does not pay for them.
            from kafkacompat.tenancy.rights import InstanceRights

            self.authorizer.instances = InstanceRights(instances)
        self.authorizer.forget()
