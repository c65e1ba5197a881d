from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from urllib.parse import quote

from typing_extensions import Unpack

from .._gen.models import CreateSessionRequest, SessionStatus
from .._options import CallOptions
from .pagination import paginate
from .session import AsyncBrowserSession
from .transport import AsyncTransport


class AsyncSessions:
    """Browser sessions of the account."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

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
