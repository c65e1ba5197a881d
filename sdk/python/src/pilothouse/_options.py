"""Options and reports of requests, which both halves of the package share."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

DEFAULT_URL = "http://localhost:8080"
DEFAULT_TIMEOUT = 60.0
DEFAULT_RETRIES = 2


class CallOptions(TypedDict, total=False):
    """Options of one call."""

    timeout: float
    """Seconds until the call, including its retries, fails."""
    max_retries: int
    idempotency_key: str
    """Identifies the request, so that a repetition has no second effect. Default: random where one is accepted."""
    headers: Mapping[str, str]


@dataclass(frozen=True)
class LogEntry:
    """Outcome of an attempt of a request. Contains no keys, queries or bodies."""

    method: str
    path: str
    attempt: int
    """Number of the attempt, from 1."""
    duration: float
    """Seconds."""
    status: int | None = None
    """None if no response was received."""
    request_id: str | None = None
    retry_in: float | None = None
    """Seconds until the next attempt, if there will be one."""
    error: Exception | None = None


@dataclass(frozen=True)
class Settings:
    """Options of a client, with their defaults."""

    api_key: str = field(repr=False)
    base_url: str
    max_retries: int
    timeout: float | None
    log: Callable[[LogEntry], object] | None


def read_settings(
    api_key: str | None,
    base_url: str | None,
    max_retries: int,
    timeout: float | None,
    log: Callable[[LogEntry], object] | None,
) -> Settings:
    """Returns the options of a client, from the environment where none are given."""
    key = api_key or os.environ.get("PILOTHOUSE_API_KEY")
    if not key:
        raise ValueError("expected an API key, got none: pass api_key, or set PILOTHOUSE_API_KEY")
    if inspect.iscoroutinefunction(log):
        raise TypeError("expected a function as log, got an asynchronous one, which no client awaits")
    url = base_url or os.environ.get("PILOTHOUSE_URL") or DEFAULT_URL
    return Settings(key, url.rstrip("/"), max_retries, timeout, log)
