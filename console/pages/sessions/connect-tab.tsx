import { SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code, CopyLine } from "../../ui/copy.tsx";
import { ProblemNotice } from "../../ui/state.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Until } from "../../ui/time.tsx";

const playwright = (url: string): string => `import { chromium } from "playwright";

const browser = await chromium.connectOverCDP("${url}");
const [context] = browser.contexts();
const [page] = context.pages();
await page.goto("https://example.com/");
console.log(await page.title());
await browser.close(); // Ends the connection; the session continues.
`;

const puppeteer = (url: string): string => `import { connect } from "puppeteer-core";

const browser = await connect({ browserWSEndpoint: "${url}", defaultViewport: null });
const [page] = await browser.pages();
await page.goto("https://example.com/");
console.log(await page.title());
await browser.disconnect();
`;

const browserUse = (url: string): string => `from browser_use import Agent, Browser, ChatOpenAI

browser = Browser(cdp_url="${url}")
agent = Agent(task="Read the headline of example.com", llm=ChatOpenAI(model="gpt-5-mini"), browser=browser)
agent.run_sync()
`;

const stagehand = (url: string): string => `import { Stagehand } from "@browserbasehq/stagehand";

const stagehand = new Stagehand({ env: "LOCAL", localBrowserLaunchOptions: { cdpUrl: "${url}" } });
await stagehand.init();
await stagehand.act("open the first link");
await stagehand.close();
`;

const clients = [
  ["Playwright", playwright],
  ["Puppeteer", puppeteer],
  ["browser-use", browserUse],
  ["Stagehand", stagehand],
] as const;

/** Code that connects a program to a CDP address. */
function ClientCode({ url }: { readonly url: string }) {
  return (
    <Tabs
      label="Program"
      items={clients.map(([title, code]) => ({
        id: title,
        title,
        content: () => <Code text={code(url)} label={`${title} code`} />,
      }))}
    />
  );
}

export function ConnectTab({ sessionId: id }: { readonly sessionId: string }) {
  const create = useChange(SessionService.method.createCdpUrl);
  const revoke = useChange(SessionService.method.deleteCdpUrls, { onDone: () => create.reset() });
  return (
    <Card
      title="Connect a program"
      about="Any client of the Chrome DevTools Protocol can drive this session, next to you."
      actions={
        create.data && (
          <Button size="small" kind="danger" isPending={revoke.isPending} onClick={() => revoke.run({ id })}>
            Revoke all addresses
          </Button>
        )
      }
    >
      {create.data ? (
        <div className="flex flex-col gap-4">
          <CopyLine text={create.data.url} label="the address" />
          <p className="text-xs text-faint">
            The address is a credential of this session. New connections can use it until it expires,{" "}
            <Until at={create.data.expiresAt} />.
          </p>
          <ClientCode url={create.data.url} />
        </div>
      ) : (
        <div className="flex flex-col items-start gap-3">
          <p className="text-sm text-soft">The address works for an hour, and only for this session.</p>
          <ProblemNotice problem={create.problem} />
          <Button kind="primary" isPending={create.isPending} onClick={() => create.run({ id })}>
            Show the address and code
          </Button>
        </div>
      )}
    </Card>
  );
}
