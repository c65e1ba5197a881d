"""Errors of calls. The classes by slug are generated."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, cast

if TYPE_CHECKING:
    from ._gen.models import FieldFault


class PilothouseError(Exception):
    """Base class of the errors that this package raises, other than TypeError and ValueError for wrong arguments."""


class PilothouseResponseError(PilothouseError):
    """Raised for an error response of the service. Each slug has a subclass. A newer service may send others."""

    classes: ClassVar[dict[str, type[PilothouseResponseError]]] = {}
    """Subclasses by slug."""

    slug: str
    """Last part of the problem's type. `internal` if the response was not a problem document."""
    status: int
    request_id: str | None
    """Identifier of the request, for reports to the operator of the service."""
    detail: str | None
    """Sentence of the service about this error: the expected value, the received one and the next step."""
    errors: list[FieldFault]
    """Faults of request fields. Empty if the error concerns no field."""
    headers: Mapping[str, str]
    retry_after: float | None
    """Seconds after which the service allows a repetition. None if the response names no time."""

    def __init__(self, status: int, problem: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self.slug = slug_of(problem)
        self.status = status
        self.request_id = headers.get("x-request-id")
        self.detail = problem.get("detail")
        self.errors = problem.get("errors") or []
        self._problem = problem
        self.headers = headers
        self.retry_after = _retry_after(headers, problem)
        super().__init__(f"{status} {problem['title']}" + (f": {self.detail}" if self.detail else ""))

    @property
    def problem(self) -> Mapping[str, Any]:
        """The whole problem document, with the extensions of its slug."""
        return self._problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self._problem, dict(self.headers))


class PilothouseConnectionError(PilothouseError):
    """Raised if no complete response was received, such as after a reset. `__cause__` is the original error."""


class PilothouseTimeoutError(PilothouseError):
    """Raised if a call, including its retries, did not finish within its `timeout`."""


def add_note(error: BaseException, text: str) -> None:
    """Adds a note to an error, which tracebacks show. Python 3.10 has no notes."""
    if sys.version_info >= (3, 11):
        error.add_note(text)


def slug_of(problem: Mapping[str, Any]) -> str:
    """Returns the last part of a problem's type."""
    found = re.search(r"/errors/([\w-]+)$", problem["type"])
    return found[1] if found else "internal"


def _retry_after(headers: Mapping[str, str], problem: Mapping[str, Any]) -> float | None:
    """Reads the seconds of Retry-After, which may be a date. Problems of a stream have no headers."""
    value = headers.get("retry-after")
    if value is None:
        seconds = problem.get("retry_after_seconds")
        return float(seconds) if isinstance(seconds, int) else None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def create_error(status: int, problem: Mapping[str, Any], headers: Mapping[str, str]) -> PilothouseResponseError:
    """Returns the error of a problem document, of the class of its slug."""
    return PilothouseResponseError.classes.get(slug_of(problem), PilothouseResponseError)(status, problem, headers)


def parse_error(status: int, body: bytes, headers: Mapping[str, str]) -> PilothouseResponseError:
    """Returns the error of a response. A proxy in front of the service may have sent another body than a problem."""
    known = status in HTTPStatus._value2member_map_
    fallback = {"type": "about:blank", "title": HTTPStatus(status).phrase if known else "Error", "status": status}
    try:
        parsed: Any = json.loads(body)
    except ValueError:
        parsed = None
    document = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    is_problem = isinstance(document.get("type"), str)
    return create_error(status, {**fallback, **document} if is_problem else fallback, headers)
