import type { Browser } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LlmProvider } from "../support/llm-provider.ts";
import { goodPassword } from "../support/people.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";

const provider = new LlmProvider();
let service: Service;
let browser: Browser;

beforeAll(async () => {
  await provider.start();
  [service, browser] = await Promise.all([startService(provider.env), launchPlainBrowser()]);
}, 120_000);
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  await browser?.close();
  await service?.stop();
}, 60_000);

test("a transcript of 300 entries has only the entries near the screen in the document", async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
  const [link = ""] = /http\S+\/console\/first-run#\S+/.exec(service.output()) ?? [];
  await page.goto(link);
  await page.getByLabel("Your name").fill("Ada Lovelace");
  await page.getByLabel("E-mail address").fill("ada@example.com");
  await page.getByLabel("Password").fill(goodPassword);
  await page.getByRole("button", { name: "Become the owner" }).click();
  await page.getByRole("heading", { name: "Hello, Ada" }).waitFor();

  const rest = restClient(service);
  await rest("/v1/account/me/byok-llm-key", { provider: "anthropic", api_key: provider.key }, { method: "PUT" });
  provider.script = (_, index) => ({ text: `Answer ${index + 1}.` });
  const { body: agent } = await rest("/v1/agent-sessions", {});
  for (let sent = 0; sent < 150; sent += 1) {
    const { body } = await rest(`/v1/agent-sessions/${agent.id}/message`, { text: "Go on", wait_ms: 60_000 });
    expect(body.text).toBe(`Answer ${sent + 1}.`);
  }
  await page.goto(`${new URL(page.url()).origin}/console/agents/${agent.id}`);
  const log = page.getByRole("log", { name: "Messages and steps" });
  const entries = log.getByText(/^(Go on|Answer \d+\.)$/);
  await log.getByText("Answer 150.").waitFor();
  expect(await entries.count()).toBeLessThan(100);

  await log.hover();
  await expect
    .poll(async () => {
      await page.mouse.wheel(0, -10_000);
      return log.getByText("Answer 1.", { exact: true }).isVisible();
    })
    .toBe(true);
  expect(await entries.count()).toBeLessThan(100);
  await page.getByRole("button", { name: "Latest step" }).click();
  await log.getByText("Answer 150.").waitFor();
  const box = "document.querySelector('[role=log]')";
  const distance = `${box}.scrollHeight - ${box}.scrollTop - ${box}.clientHeight`;
  await expect.poll(() => page.evaluate(distance)).toBeLessThan(2);
}, 200_000);
