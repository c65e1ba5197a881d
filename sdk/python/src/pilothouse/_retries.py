"""Which requests are repeated, and when."""

from __future__ import annotations

import random
import re
from typing import Literal

from ._errors import PilothouseConnectionError, PilothouseResponseError

Repetition = Literal["safe", "key", "refused", "never"]
"""
Why a repetition of a request is safe.
- `safe`: the request changes nothing, or has the same effect twice.
- `key`: the request has an idempotency key, and the service answers a repetition with the first response.
- `refused`: the service has refused the request before it did anything. Other failures are not repeated.
- `never`: a repetition could have a second effect.
"""

# Paths of POST requests that only read.
_READING = re.compile(r"/v1/sessions/[^/]+/(?:wait|capture|observe|read)")

# Paths of POST requests that accept an Idempotency-Key.
_KEYED = re.compile(
    r"/v1/sessions"
    r"|/v1/sessions/[^/]+/(?:navigate|interact|cdp-url|view-links)"
    r"|/v1/agent-sessions"
    r"|/v1/agent-sessions/[^/]+/(?:message|mode|takeover|handback)"
    r"|/v1/agent-sessions/[^/]+/turns/[^/]+/cancel"
)

# Slugs of temporary errors. All others are raised at once.
_TEMPORARY = frozenset({"rate-limited", "internal", "capacity-unavailable"})

# Slugs of temporary errors with which the service refuses a request before it does anything.
_REFUSALS = frozenset({"rate-limited", "capacity-unavailable"})

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
# Largest `Retry-After` that is obeyed. If the service asks for more, the error is raised.
_LONGEST_RETRY_AFTER = 60.0


def repetition_of(method: str, path: str, has_key: bool) -> Repetition:
    """Returns how a request may be repeated. `has_key` states whether the caller passed an idempotency key."""
    if method in ("GET", "PUT", "DELETE"):
        return "safe"
    if method != "POST":
        return "never"
    if _READING.fullmatch(path):
        return "safe"
    if path == "/v1/fetch":
        return "refused"
    return "key" if has_key or _KEYED.fullmatch(path) else "never"


def retry_delay(error: Exception, attempt: int, repetition: Repetition = "safe") -> float | None:
    """Returns the seconds to wait before a repetition, or None if the error is final."""
    if repetition == "refused" and not (isinstance(error, PilothouseResponseError) and error.slug in _REFUSALS):
        return None
    backoff: float = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT)
    jittered = backoff * (0.75 + random.random() / 4)
    if isinstance(error, PilothouseConnectionError):
        return jittered
    if not isinstance(error, PilothouseResponseError) or not _is_temporary(error):
        return None
    asked = error.retry_after
    if asked is None:
        return jittered
    return asked if asked <= _LONGEST_RETRY_AFTER else None


def _is_temporary(error: PilothouseResponseError) -> bool:
    """A response without a problem document is temporary if its status is that of an overloaded proxy."""
    if error.slug not in _TEMPORARY:
        return False
    return error.problem["type"] != "about:blank" or error.status == 429 or error.status >= 500
