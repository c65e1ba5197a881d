"""Prints a page as Markdown of crawl4ai: python crawl.py https://shop.example/products"""

import asyncio
import sys

from crawl4ai import AsyncWebCrawler, BrowserConfig, CrawlerRunConfig
from pilothouse import AsyncPilothouse


async def main() -> None:
    async with AsyncPilothouse() as client, await client.sessions.create() as session:
        browser = BrowserConfig(cdp_url=await session.cdp_url(), verbose=False)
        async with AsyncWebCrawler(config=browser) as crawler:
            result = await crawler.arun(sys.argv[1], config=CrawlerRunConfig(verbose=False))
            if not result.success:
                sys.exit(result.error_message)
            print(result.markdown)


asyncio.run(main())
