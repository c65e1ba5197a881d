/** A program of a tool as its documentation writes it, with the address of the browser in ADDRESS and a page in PAGE. */
export interface ToolProgram {
  readonly language: "js" | "python";
  /** Scheme of the address that the tool documents. */
  readonly scheme: "ws" | "http";
  readonly text: string;
}

const playwright = `
import { chromium } from "playwright";

const browser = await chromium.connectOverCDP(process.env.ADDRESS);
const page = browser.contexts()[0].pages()[0];
await page.goto(process.env.PAGE);
await page.getByLabel("Name").fill("Ada");
await page.getByRole("button", { name: "Greet" }).click();
console.log(await page.title());
await browser.close();
`;

const puppeteer = `
import { connect } from "puppeteer-core";

const browser = await connect({ browserWSEndpoint: process.env.ADDRESS, defaultViewport: null });
const [page] = await browser.pages();
await page.goto(process.env.PAGE);
await page.locator("#name").fill("Ada");
await page.locator("#greet").click();
console.log(await page.title());
await browser.close();
`;

const stagehand = `
import { Stagehand } from "@browserbasehq/stagehand";

const stagehand = new Stagehand({
  env: "LOCAL",
  localBrowserLaunchOptions: { cdpUrl: process.env.ADDRESS },
  verbose: 0,
  disablePino: true,
});
await stagehand.init();
const page = stagehand.context.pages()[0];
await page.goto(process.env.PAGE);
const act = (method, selector, ...args) =>
  stagehand.act({ method, selector: \`xpath=//*[@id='\${selector}']\`, description: selector, arguments: args });
await act("fill", "name", "Ada");
await act("click", "greet");
console.log(await page.title());
await stagehand.close();
`;

const pythonPlaywright = `
import os

from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    browser = playwright.chromium.connect_over_cdp(os.environ["ADDRESS"])
    page = browser.contexts[0].pages[0]
    page.goto(os.environ["PAGE"])
    page.get_by_label("Name").fill("Ada")
    page.get_by_role("button", name="Greet").click()
    print(page.title())
    browser.close()
`;

const browserUse = `
import asyncio
import os

from browser_use import Agent, Browser, ChatOpenAI


async def main():
    llm = ChatOpenAI(model="gpt-4.1", base_url=os.environ["LLM"], api_key="good-key", frequency_penalty=None)
    browser = Browser(cdp_url=os.environ["ADDRESS"])
    task = f"Open {os.environ['PAGE']} and greet Ada. Return the title of the page."
    history = await Agent(task=task, llm=llm, browser=browser, use_vision=False).run(max_steps=8)
    print(history.final_result())
    await browser.stop()


asyncio.run(main())
`;

const crawl4ai = `
import asyncio
import os

from crawl4ai import AsyncWebCrawler, BrowserConfig, CrawlerRunConfig

greet = "document.querySelector('#name').value = 'Ada'; document.querySelector('#greet').click();"


async def main():
    browser = BrowserConfig(cdp_url=os.environ["ADDRESS"], verbose=False)
    async with AsyncWebCrawler(config=browser) as crawler:
        run = CrawlerRunConfig(js_code=greet, screenshot=True, verbose=False)
        result = await crawler.arun(os.environ["PAGE"], config=run)
        print(result.metadata["title"] if result.screenshot else result.error_message)


asyncio.run(main())
`;

/** Programs that open the page, greet Ada and print the title of the page. */
export const toolPrograms: Readonly<Record<string, ToolProgram>> = {
  Playwright: { language: "js", scheme: "ws", text: playwright },
  "Playwright, by HTTP": { language: "js", scheme: "http", text: playwright },
  "Playwright for Python": { language: "python", scheme: "http", text: pythonPlaywright },
  Puppeteer: { language: "js", scheme: "ws", text: puppeteer },
  "browser-use": { language: "python", scheme: "http", text: browserUse },
  Stagehand: { language: "js", scheme: "ws", text: stagehand },
  crawl4ai: { language: "python", scheme: "ws", text: crawl4ai },
};
