"""What is said to those who ask for security that is not there.

`authorizer.class.name` and every protocol but PLAINTEXT are refused at the start, so there are no ACLs and no way
to get a delegation token, and everybody is ANONYMOUS.
"""

from __future__ import annotations

NO_AUTHORIZER = "this broker has no authorizer and keeps no ACLs"
USER_TYPE = "User"
ANONYMOUS = "ANONYMOUS"
NO_TIMESTAMP_MS = -1
