from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast
from urllib.parse import quote

import httpx

from .._async_runtime import ByteStream
from .._errors import PilothouseConnectionError
from .._gen.models import SessionFile
from .._options import CallOptions
from .pagination import paginate
from .transport import AsyncTransport


class AsyncSessionFiles:
    """Files of a session: uploads for its pages, and downloads from them."""

    def __init__(self, transport: AsyncTransport, session_path: str) -> None:
        self._transport = transport
        self._path = f"{session_path}/files"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(path={self._path!r})"

    async def list(
        self, *, limit: int | None = None, options: CallOptions | None = None
    ) -> AsyncGenerator[SessionFile]:
        """Iterates over all files. `limit` is the size of a page."""
        async for file in paginate(self._transport, self._path, {"limit": limit}, options):
            yield file

    async def put(
        self, name: str, content: bytes | str | ByteStream, *, options: CallOptions | None = None
    ) -> SessionFile:
        """
        Stores a file, which replaces one of the same name. An iterator of bytes is sent as it is read, and never
        retried.
        """
        stored = await self._transport.json("PUT", self._path_of(name), None, options, content=content)
        return cast(SessionFile, stored)

    @asynccontextmanager
    async def stream(self, name: str, *, options: CallOptions | None = None) -> AsyncGenerator[AsyncGenerator[bytes]]:
        """Opens a file, and returns a context manager with an iterator over its bytes."""
        response = await self._transport.open("GET", self._path_of(name), None, options)
        try:
            yield _read_chunks(response)
        finally:
            await response.aclose()

    async def get(self, name: str, *, options: CallOptions | None = None) -> bytes:
        """Returns the content of a file."""
        async with self.stream(name, options=options) as chunks:
            return b"".join([chunk async for chunk in chunks])

    async def delete(self, name: str, *, options: CallOptions | None = None) -> None:
        """Deletes a file."""
        await self._transport.json("DELETE", self._path_of(name), None, options)

    def _path_of(self, name: str) -> str:
        return f"{self._path}/{quote(name, safe='')}"


async def _read_chunks(response: httpx.Response) -> AsyncGenerator[bytes]:
    try:
        async for chunk in response.aiter_bytes():
            yield chunk
    except httpx.HTTPError as error:
        raise PilothouseConnectionError(f"no complete response: {error}") from error
