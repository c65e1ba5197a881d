"""Reads a page by the tools of the MCP server: python read_by_mcp.py https://example.com/"""

import asyncio
import os
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = os.environ.get("PILOTHOUSE_URL", "http://localhost:8080")
HEADERS = {"authorization": f"Bearer {os.environ['PILOTHOUSE_API_KEY']}"}


async def call(client: Client, name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """Calls a tool, and returns its text and its structured content."""
    result = await client.call_tool(name, arguments)
    text = "\n".join(part.text for part in result.content if part.type == "text")
    if result.is_error:
        raise RuntimeError(f"{name} failed: {text}")
    return text, result.structured_content or {}


async def main() -> None:
    http = httpx2.AsyncClient(headers=HEADERS, timeout=60)
    async with Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as client:
        print(*(tool.name for tool in (await client.list_tools()).tools))
        _, started = await call(client, "start_session")
        session_id = started["session_id"]
        try:
            await call(client, "navigate", session_id=session_id, url=sys.argv[1])
            print((await call(client, "read", session_id=session_id))[0])
        finally:
            await call(client, "end_session", session_id=session_id)


asyncio.run(main())
