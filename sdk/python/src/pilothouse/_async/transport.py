from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

from .._async_runtime import ByteStream, sleep
from .._errors import PilothouseConnectionError, PilothouseResponseError, PilothouseTimeoutError, parse_error
from .._options import DEFAULT_TIMEOUT, CallOptions, LogEntry, Settings
from .._retries import repetition_of, retry_delay

# The service sends a comment after 15 s without events. A stream silent for longer is broken.
_SILENCE = 45.0

# Fields of requests with the milliseconds for which the service may wait.
_WAITS = ("timeout_ms", "wait_for_slot_ms", "wait_ms")


@dataclass(frozen=True)
class Request:
    """Request of a call, with the headers of all its attempts."""

    method: str
    path: str
    query: Mapping[str, Any]
    content: bytes | str | ByteStream | None
    headers: Mapping[str, str]
    # Whether the call ends when the headers are received, and leaves the body to the caller.
    streams: bool


@dataclass
class Deadline:
    """End of a call."""

    timeout: float
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.timeout

    def remaining(self) -> float:
        return self.end - time.monotonic()

    def require(self) -> float:
        """Returns the remaining seconds. Raises PilothouseTimeoutError if there are none."""
        remaining = self.remaining()
        if remaining <= 0:
            raise self.exceeded()
        return remaining

    def exceeded(self) -> PilothouseTimeoutError:
        return PilothouseTimeoutError(f"no response within {self.timeout:g} s")


@dataclass
class Attempt:
    """Attempt of a request, for its log entry."""

    request: Request
    number: int
    began: float
    response: httpx.Response | None = None

    def describe(self, error: Exception | None = None, retry_in: float | None = None) -> LogEntry:
        response = self.response
        return LogEntry(
            method=self.request.method,
            path=self.request.path,
            attempt=self.number,
            duration=time.monotonic() - self.began,
            status=None if response is None else response.status_code,
            request_id=None if response is None else response.headers.get("x-request-id"),
            retry_in=retry_in,
            error=error,
        )


class AsyncTransport:
    """Sends requests of a client, with its retries, deadlines and log entries."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient | None) -> None:
        self._settings = settings
        self._http = http or httpx.AsyncClient()
        self._owns_http = http is None

    @property
    def shown_url(self) -> str:
        """Address of the service, without credentials."""
        return str(httpx.URL(self._settings.base_url).copy_with(userinfo=b""))

    async def close(self) -> None:
        """Closes idle connections. A client that the caller passed stays open."""
        if self._owns_http:
            await self._http.aclose()

    async def json(
        self,
        method: str,
        path: str,
        body: object = None,
        options: CallOptions | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        content: bytes | str | ByteStream | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Sends a request and returns its JSON response, or None for a response without content."""
        request = self._prepare(method, path, body, options, query, content, headers, streams=False)
        _, value = await self._call(request, body, options or {})
        return value

    async def open(
        self,
        method: str,
        path: str,
        body: object = None,
        options: CallOptions | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Sends a request and returns its response with an unread body, which the caller closes."""
        request = self._prepare(method, path, body, options, query, None, headers, streams=True)
        response, _ = await self._call(request, body, options or {})
        return response

    def _prepare(
        self,
        method: str,
        path: str,
        body: object,
        options: CallOptions | None,
        query: Mapping[str, Any] | None,
        content: bytes | str | ByteStream | None,
        more: Mapping[str, str] | None,
        *,
        streams: bool,
    ) -> Request:
        given = options or {}
        headers = {"authorization": f"Bearer {self._settings.api_key}", **(more or {}), **given.get("headers", {})}
        if body is not None:
            content = json.dumps(body)
            headers["content-type"] = "application/json"
        elif content is not None:
            headers["content-type"] = "application/octet-stream"
        if (key := given.get("idempotency_key")) is not None:
            headers["idempotency-key"] = key
        present = {name: value for name, value in (query or {}).items() if value is not None}
        return Request(method, path, present, content, headers, streams)

    async def _call(self, request: Request, body: object, options: CallOptions) -> tuple[httpx.Response, Any]:
        repetition = repetition_of(request.method, request.path, "idempotency_key" in options)
        if repetition == "key" and "idempotency-key" not in request.headers:
            headers = {**request.headers, "idempotency-key": str(uuid.uuid4())}
            request = Request(request.method, request.path, request.query, request.content, headers, request.streams)
        can_repeat = repetition != "never" and isinstance(request.content, (bytes, str, type(None)))
        retries = options.get("max_retries", self._settings.max_retries) if can_repeat else 0
        deadline = Deadline(self._timeout_of(body, options))
        number = 0
        while True:
            number += 1
            attempt = Attempt(request, number, time.monotonic())
            try:
                value = await self._send(attempt, deadline)
            except (PilothouseResponseError, PilothouseConnectionError, PilothouseTimeoutError) as error:
                wait = retry_delay(error, number - 1, repetition) if number <= retries else None
                self._log(attempt.describe(error, wait))
                if wait is None or wait >= deadline.remaining():
                    raise
                await sleep(wait)
                continue
            self._log(attempt.describe())
            # `_send` sets the response before it returns.
            assert attempt.response is not None
            return attempt.response, value

    async def _send(self, attempt: Attempt, deadline: Deadline) -> Any:
        """Sends a request. Returns the JSON of its response, or None without content and for a stream."""
        request = attempt.request
        seconds = deadline.require()
        timeout = httpx.Timeout(seconds, read=_SILENCE if request.streams else seconds)
        url = self._settings.base_url + request.path
        try:
            built = self._http.build_request(
                request.method,
                url,
                params=request.query or None,
                content=request.content,
                headers=request.headers,
                timeout=timeout,
            )
            attempt.response = response = await self._http.send(built, stream=True, follow_redirects=False)
            if response.is_success and request.streams:
                return None
            data = await self._read(response, deadline)
        except httpx.TimeoutException as error:
            if not request.streams:
                raise deadline.exceeded() from error
            raise PilothouseConnectionError(f"the stream was silent for {_SILENCE:g} s") from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise PilothouseConnectionError(f"no complete response: {error}") from error
        if not response.is_success:
            raise parse_error(response.status_code, data, response.headers)
        try:
            return json.loads(data) if data else None
        except ValueError as error:
            raise PilothouseConnectionError("expected JSON in the response, got other content") from error

    async def _read(self, response: httpx.Response, deadline: Deadline) -> bytes:
        """Reads a body. The timeout of httpx is that of each chunk, so that the sum is compared here."""
        chunks: list[bytes] = []
        try:
            async for chunk in response.aiter_bytes():
                chunks.append(chunk)
                deadline.require()
        finally:
            await response.aclose()
        return b"".join(chunks)

    def _log(self, entry: LogEntry) -> None:
        if self._settings.log:
            self._settings.log(entry)

    def _timeout_of(self, body: object, options: CallOptions) -> float:
        fields = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
        own = sum(fields.get(name) or 0 for name in _WAITS)
        set_by_caller = options.get("timeout", self._settings.timeout)
        return DEFAULT_TIMEOUT + float(own) / 1000 if set_by_caller is None else set_by_caller
