"""The answer to requests for security features that this broker lacks.

The broker refuses to start with a protocol other than PLAINTEXT. So there are no delegation tokens, and every client is ANONYMOUS.
"""

from __future__ import annotations

NO_TIMESTAMP_MS = -1
