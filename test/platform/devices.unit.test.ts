import { devices } from "playwright";
import { expect, test } from "vitest";

test("the device list equals that of the installed Playwright; `-u` copies it", async () => {
  const list = Object.entries(devices).map(([name, { defaultBrowserType: _browser, ...device }]) => [name, device]);
  const lines = list.map(([name, device]) => `  ${JSON.stringify(name)}: ${JSON.stringify(device)}`);
  const file = new URL("../../src/platform/browsers/devices.json", import.meta.url).pathname;
  await expect(`{\n${lines.join(",\n")}\n}\n`).toMatchFileSnapshot(file);
});
