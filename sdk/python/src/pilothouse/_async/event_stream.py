from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from .._async_runtime import sleep
from .._errors import PilothouseConnectionError, PilothouseResponseError, create_error, slug_of
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
    has_ended: Callable[[], Any] | None = None
    """Returns whether to end the stream. Called if a connection broke before its first item, which may be missed."""


async def open_events(source: StreamSource, after_event_id: str | None = None) -> AsyncGenerator[Any]:
    """
    Connects to a stream of events or log entries, and returns its items. Reconnects after the last received item if the
    connection breaks, so that none is lost or repeated. Ends after a terminal item, or if the session has ended.
    """
    connection = await _connect(source, after_event_id)
    return _follow(source, connection, after_event_id)


async def _follow(source: StreamSource, first: httpx.Response, last_id: str | None) -> AsyncGenerator[Any]:
    response = first
    fruitless = 0
    while True:
        try:
            async for frame_id, event in _read_events(response):
                if event is None:
                    # The first frame of a stream has the id after which the stream starts.
                    last_id = last_id or frame_id
                    continue
                fruitless = 0
                if last_id is not None and event.get("id") == last_id:
                    continue
                last_id = event.get("id", last_id)
                yield event
                if event["type"] in source.last:
                    return
        except (PilothouseConnectionError, PilothouseResponseError) as error:
            if response is not first and _is_end(error):
                return
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
        except PilothouseResponseError as error:
            if _is_end(error):
                return
            raise
        if last_id is None and source.has_ended and await source.has_ended():
            await response.aclose()
            return


def _is_end(error: Exception) -> bool:
    """Returns whether a connection after the first failed because the session ended: all its items were received."""
    return isinstance(error, PilothouseResponseError) and error.slug == "session-destroyed"


async def _connect(source: StreamSource, last_id: str | None) -> httpx.Response:
    resumed = {} if last_id is None else {"last-event-id": last_id}
    headers = {"accept": "text/event-stream", **resumed}
    return await source.transport.open("GET", source.path, None, {"max_retries": _MAX_FRUITLESS}, headers=headers)


async def _read_events(response: httpx.Response) -> AsyncGenerator[Any]:
    """
    Reads the ids and events of a response. The frame of an opened stream has only an id. Raises the problem of an
    `error` event.
    """
    parser = EventParser()
    try:
        async for chunk in response.aiter_bytes():
            for frame_id, kind, data in parser.feed(chunk):
                parsed: Any = json.loads(data) if data else None
                if kind == "error":
                    raise _problem_error(parsed, response)
                yield frame_id, parsed
    except httpx.HTTPError as error:
        raise PilothouseConnectionError(f"the stream broke: {error}") from error


def _problem_error(problem: dict[str, Any], response: httpx.Response) -> PilothouseResponseError:
    known = {**problem, "type": "/errors/internal"} if slug_of(problem) == "internal" else problem
    return create_error(problem.get("status", response.status_code), known, response.headers)
