from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, cast

import httpx

from .._async_runtime import sleep
from .._errors import PilothouseConnectionError, PilothouseError, create_error, slug_of
from .._gen.models import ServiceEvent
from .._retries import retry_delay
from .._sse import EventParser
from .transport import AsyncTransport

# Connections in a row that bring no event until the stream fails.
_MAX_FRUITLESS = 8


@dataclass(frozen=True)
class StreamSource:
    """Stream to open."""

    transport: AsyncTransport
    path: str
    last: frozenset[str]
    """Types after which the service ends the stream."""


async def open_events(source: StreamSource, after_event_id: str | None = None) -> AsyncGenerator[ServiceEvent]:
    """
    Connects to a stream of events, and returns its events. Reconnects after the last received event if the connection
    breaks, so that no event is lost or repeated. Ends after the terminal event.
    """
    connection = await _connect(source, after_event_id)
    return _follow(source, connection, after_event_id)


async def _follow(source: StreamSource, response: httpx.Response, last_id: str | None) -> AsyncGenerator[ServiceEvent]:
    fruitless = 0
    while True:
        try:
            async for event in _read_events(response):
                fruitless = 0
                if last_id is not None and event.get("id") == last_id:
                    continue
                last_id = event.get("id", last_id)
                yield event
                if event["type"] in source.last:
                    return
        except (PilothouseConnectionError, PilothouseError) as error:
            if retry_delay(error, 0) is None:
                raise
        finally:
            await response.aclose()
        fruitless += 1
        if fruitless > _MAX_FRUITLESS:
            raise PilothouseConnectionError(f"the stream broke {fruitless} times in a row")
        await sleep(retry_delay(PilothouseConnectionError(), fruitless - 1) or 0)
        try:
            response = await _connect(source, last_id)
        except PilothouseError as error:
            # The session ended, and its terminal event was received or preceded the stream.
            if error.slug == "session-destroyed":
                return
            raise


async def _connect(source: StreamSource, last_id: str | None) -> httpx.Response:
    resumed = {} if last_id is None else {"last-event-id": last_id}
    headers = {"accept": "text/event-stream", **resumed}
    return await source.transport.open("GET", source.path, None, {"max_retries": _MAX_FRUITLESS}, headers=headers)


async def _read_events(response: httpx.Response) -> AsyncGenerator[ServiceEvent]:
    """Reads the events of a response. Raises the problem of an `error` event."""
    parser = EventParser()
    try:
        async for chunk in response.aiter_bytes():
            for kind, data in parser.feed(chunk):
                parsed = json.loads(data)
                if kind == "error":
                    raise _problem_error(parsed, response)
                yield cast(ServiceEvent, parsed)
    except httpx.HTTPError as error:
        raise PilothouseConnectionError(f"the stream broke: {error}") from error


def _problem_error(problem: dict[str, Any], response: httpx.Response) -> PilothouseError:
    known = {**problem, "type": "/errors/internal"} if slug_of(problem) == "internal" else problem
    return create_error(problem.get("status", response.status_code), known, response.headers)
