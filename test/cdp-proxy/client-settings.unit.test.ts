import { expect, test } from "vitest";
import { ClientSettings } from "../../workers/cdp-proxy/client-settings.ts";
import { outcomeOf } from "./policy-outcome.ts";

/** Creates the settings of a client, and records the commands sent to the browser since the last read. */
function openSettings() {
  const sent: string[] = [];
  const settings = new ClientSettings(async ({ method, params, sessionId }) => {
    expect(outcomeOf(method)).toBe("pass");
    sent.push(`${sessionId} ${method} ${params}`);
  });
  const note = (method: string, params: object = {}, sessionId: string | undefined = "S") =>
    settings.record({ method, params: JSON.stringify(params), sessionId });
  return { settings, note, sent: () => sent.splice(0) };
}

test("undoes settings and reapplies them in order", async () => {
  const { settings, note, sent } = openSettings();
  note("Input.setIgnoreInputEvents", { ignore: true });
  note("Fetch.enable", { patterns: [{ urlPattern: "*" }] });
  note("Fetch.enable", {}, "T");
  note("Page.navigate", { url: "about:blank" });
  note("Input.setIgnoreInputEvents", { ignore: false });
  await settings.redo();
  expect(sent()).toEqual([]);
  await settings.undo();
  expect(sent()).toEqual(["S Fetch.disable {}", "T Fetch.disable {}", 'S Input.setIgnoreInputEvents {"ignore":false}']);
  await settings.undo();
  expect(sent()).toEqual([]);
  await settings.redo();
  expect(sent()).toEqual([
    'S Fetch.enable {"patterns":[{"urlPattern":"*"}]}',
    "T Fetch.enable {}",
    'S Input.setIgnoreInputEvents {"ignore":false}',
  ]);
});

test("does not reapply settings that the client disabled or whose session has ended", async () => {
  const { settings, note, sent } = openSettings();
  note("Fetch.enable");
  note("Network.setBlockedURLs", { urls: ["*"] });
  note("Fetch.enable", {}, "T");
  note("Fetch.enable", {}, "U");
  await settings.undo();
  sent();
  note("Network.disable");
  note("Fetch.disable", {}, "T");
  settings.forgetSession("U");
  await settings.redo();
  expect(sent()).toEqual(["S Fetch.enable {}"]);
});

test("resumes a debugged page and restores the client's pause setting", async () => {
  const { settings, note, sent } = openSettings();
  note("Debugger.enable");
  note("Debugger.setSkipAllPauses", { skip: true }, "T");
  note("Debugger.enable", {}, "T");
  await settings.undo();
  expect(sent()).toEqual(
    ["S", "T"].flatMap((session) => [
      `${session} Debugger.setSkipAllPauses {"skip":true}`,
      `${session} Debugger.resume {}`,
    ]),
  );
  await settings.redo();
  expect(sent()).toEqual(['S Debugger.setSkipAllPauses {"skip":false}', 'T Debugger.setSkipAllPauses {"skip":true}']);
});

test("refuses settings beyond 1 MiB", () => {
  const { settings, note } = openSettings();
  const urls = ["x".repeat(300_000)];
  for (const session of ["S", "T", "U"]) expect(note("Network.setBlockedURLs", { urls }, session)).toBe(true);
  expect(note("Network.setBlockedURLs", { urls }, "V")).toBe(false);
  expect(note("Network.setBlockedURLs", { urls }, "U")).toBe(true);
  settings.forgetSession("S");
  expect(note("Network.setBlockedURLs", { urls }, "V")).toBe(true);
  const sessions = Array.from({ length: 10_000 }, (_, index) => `W${index}`);
  expect(sessions.filter((session) => note("Fetch.enable", {}, session)).length).toBeLessThan(4_000);
});
