"""Are all records there, once and in order, and how long did they take: of topics, archives, and one beside the other."""

from spark_integration.audit.command import command
from spark_integration.audit.pipeline import audit

__all__ = ["audit", "command"]
