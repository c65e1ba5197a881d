from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Literal

import httpx
from typing_extensions import Self, Unpack

from .._async_runtime import ByteStream
from .._fetched import decode_page
from .._gen.models import FetchedPage, FetchOptions, ServiceEvent
from .._options import DEFAULT_RETRIES, CallOptions, LogEntry, read_settings
from .agents import AsyncAgents
from .event_stream import StreamSource, open_events
from .pagination import paginate
from .sessions import AsyncSessions
from .transport import AsyncTransport

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class AsyncPilothouse:
    """
    Client of a Pilothouse service. A `with` block closes its idle connections.

    - `api_key`: API key, or a login token. Default: the environment variable PILOTHOUSE_API_KEY.
    - `base_url`: default: the environment variable PILOTHOUSE_URL, else `http://localhost:8080`.
    - `max_retries`: retries of a call after temporary errors.
    - `timeout`: seconds until a call, including its retries, fails. Default: 60 more than the call's own `timeout_ms`.
    - `http_client` replaces the client's own, for proxies or certificates. The caller closes it.
    - `log` receives an entry after each attempt. Entries contain no keys, queries or bodies.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = DEFAULT_RETRIES,
        timeout: float | None = None,
        http_client: httpx.AsyncClient | None = None,
        log: Callable[[LogEntry], object] | None = None,
    ) -> None:
        settings = read_settings(api_key, base_url, max_retries, timeout, log)
        self._transport = AsyncTransport(settings, http_client)
        self.sessions: AsyncSessions = AsyncSessions(self._transport)
        self.agents: AsyncAgents = AsyncAgents(self._transport)

    async def fetch(
        self, url: str, *, options: CallOptions | None = None, **request: Unpack[FetchOptions]
    ) -> FetchedPage:
        """
        Loads a URL in a browser of its own, and returns the page in each of `formats`, by default as Markdown.
        Retried only if the service has refused the call, with `rate-limited` or `capacity-unavailable`.
        """
        return decode_page(await self._transport.json("POST", "/v1/fetch", {"url": url, **request}, options))

    async def events(self, *, after_event_id: str | None = None) -> AsyncGenerator[ServiceEvent]:
        """
        Iterates over the events of the account that webhooks can receive, from now on or after an event. Reconnects
        after the last received event if the connection breaks.
        """
        source = StreamSource(self._transport, "/v1/events/stream", frozenset())
        async with aclosing(await open_events(source, after_event_id)) as events:
            async for event in events:
                yield event

    def list(
        self, path: str, *, query: Mapping[str, Any] | None = None, options: CallOptions | None = None
    ) -> AsyncGenerator[Any]:
        """
        Iterates over all items of any list, such as `client.list("/v1/profiles")`. Requests pages as they are needed.
        """
        return paginate(self._transport, path, query or {}, options)

    async def request(
        self,
        method: Method,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        content: bytes | str | ByteStream | None = None,
        options: CallOptions | None = None,
    ) -> Any:
        """
        Sends a request to any endpoint, such as `client.request("GET", "/v1/profiles")`, and returns its JSON. A POST
        is retried only with an `idempotency_key`, or if the service is known to accept one.
        """
        return await self._transport.json(method, path, body, options, query=query, content=content)

    async def raw(
        self,
        method: Method,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        options: CallOptions | None = None,
    ) -> httpx.Response:
        """Sends a request to any endpoint, and returns the response with an unread body, which the caller closes."""
        return await self._transport.open(method, path, body, options, query=query)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self._transport.shown_url!r})"

    async def close(self) -> None:
        """Closes idle connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
