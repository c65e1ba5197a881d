from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from urllib.parse import quote

from typing_extensions import Unpack

from .._gen.models import CreateSessionRequest, SessionLogEntry, SessionStatus
from .._options import CallOptions
from .event_stream import StreamSource, open_events
from .pagination import paginate
from .session import AsyncBrowserSession
from .transport import AsyncTransport


class AsyncSessions:
    """Browser sessions of the account."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def create(
        self, *, options: CallOptions | None = None, **request: Unpack[CreateSessionRequest]
    ) -> AsyncBrowserSession:
        """Creates a session, and returns it when its browser runs."""
        data = await self._transport.json("POST", "/v1/sessions", request, options)
        return AsyncBrowserSession(self._transport, data)

    async def get(self, id: str, *, options: CallOptions | None = None) -> AsyncBrowserSession:
        """Returns a session, including one that other programs created."""
        data = await self._transport.json("GET", f"/v1/sessions/{quote(id, safe='')}", None, options)
        return AsyncBrowserSession(self._transport, data)

    async def list(
        self,
        *,
        status: SessionStatus | None = None,
        label: Sequence[str] = (),
        limit: int | None = None,
        options: CallOptions | None = None,
    ) -> AsyncGenerator[AsyncBrowserSession]:
        """
        Iterates over all sessions that match, newest first. Requests pages of `limit` sessions as they are needed. Each
        `label` is `name:value`.
        """
        query = {"status": status, "label": label or None, "limit": limit}
        async for data in paginate(self._transport, "/v1/sessions", query, options):
            yield AsyncBrowserSession(self._transport, data)

    async def logs(self, id: str, *, after_entry_id: str | None = None) -> AsyncGenerator[SessionLogEntry]:
        """
        Iterates over the log of a session, from its first entry or after one, and then over new entries until the
        session ends. Logs of ended sessions are kept for 7 days. Reconnects after the last received entry if the
        connection breaks.
        """
        # The stream ends with the session, after an entry of any type.
        source = StreamSource(self._transport, f"/v1/sessions/{quote(id, safe='')}/logs/stream", frozenset())
        async with aclosing(await open_events(source, after_entry_id)) as entries:
            async for entry in entries:
                yield entry
