"""The answer to requests for ACLs, which this broker lacks: it refuses to start with `authorizer.class.name`."""

from __future__ import annotations

NO_AUTHORIZER = "this broker has no authorizer and keeps no ACLs"
