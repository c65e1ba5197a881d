from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from .._options import CallOptions
from .transport import AsyncTransport


async def paginate(
    transport: AsyncTransport, path: str, query: Mapping[str, Any], options: CallOptions | None
) -> AsyncGenerator[Any]:
    """Iterates over the items of a list, and requests its pages as they are needed."""
    cursor: str | None = None
    while True:
        page = await transport.json("GET", path, None, options, query={**query, "cursor": cursor})
        for item in page["data"]:
            yield item
        cursor = page["next_cursor"] if page["has_more"] else None
        if cursor is None:
            return
