"""The answer to requests for security features that this broker lacks.

The broker refuses to start with `authorizer.class.name` or with a protocol other than PLAINTEXT. So there are no ACLs, no
delegation tokens, and every client is ANONYMOUS.
"""

from __future__ import annotations

NO_AUTHORIZER = "this broker has no authorizer and keeps no ACLs"
NO_TIMESTAMP_MS = -1
