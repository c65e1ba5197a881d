"""Lets a person enter a second factor: BANK_PASSWORD=... python takeover.py https://bank.example"""

import asyncio
import os
import sys

from pilothouse import AsyncBrowserSession, AsyncPilothouse

bank = sys.argv[1]


async def wait_for_handback(session: AsyncBrowserSession) -> None:
    """Returns when a person has handed control back. While a person has control, calls that act raise ConflictError."""
    async for event in session.events():
        if event["type"] == "session.control_changed" and event["data"]["cause"] == "handback":
            return
    raise RuntimeError("the session ended before a person handed control back")


async def main() -> None:
    async with AsyncPilothouse() as client, await client.sessions.create() as session:
        await session.goto(f"{bank}/login")
        await session.fill("[name=user]", "ada")
        await session.fill("[name=password]", os.environ["BANK_PASSWORD"])
        await session.tap("button")
        await session.wait("[name=code]")
        handback = asyncio.create_task(wait_for_handback(session))
        link = await session.live_url(control=True)
        print(f"Take control, enter the code, and hand back: {link}", flush=True)
        await handback
        await session.wait("#account")
        print((await session.state())["title"])


asyncio.run(main())
