"""Asks an agent of browser-use: OPENAI_API_KEY=... python ask_browser_use.py https://shop.example/products"""

import asyncio
import os
import sys

from browser_use import Agent, ChatOpenAI
from pilothouse import AsyncPilothouse
from pilothouse.integrations.browser_use import connect


async def main() -> None:
    llm = ChatOpenAI(model=os.environ.get("LLM_MODEL", "gpt-4.1"))
    async with AsyncPilothouse() as client, await client.sessions.create() as session:
        browser = await connect(session)
        agent = Agent(task=f"Find the cheapest product on {sys.argv[1]}.", llm=llm, browser=browser)
        history = await agent.run(max_steps=20)
        print(history.final_result())
        await browser.stop()


asyncio.run(main())
