import { expect } from "vitest";
import { LiveClient } from "../support/live-client.ts";
import type { ToolOutput } from "./sdk-clients.ts";

/** Calls a tool. */
export type CallTool = (name: string, args?: Record<string, unknown>) => Promise<ToolOutput>;

/** Returns the reference of an element in a page that a tool has shown. */
export const refOf = ({ structured }: ToolOutput, element: string): string =>
  new RegExp(`${element}.* ref=(s\\d+e\\d+)`).exec(structured.page)?.[1] ?? `no ${element} in ${structured.page}`;

/** Takes control by the link of `ask_person`, types into the page, and hands back. */
async function takeOver(gatewayUrl: string, link: string): Promise<void> {
  const key = new URL(link).hash.slice(1);
  const known = { viewer_key: "the secret of this person" };
  using person = await LiveClient.join(gatewayUrl, key, known);
  person.send({ take_control: {} });
  await person.receive(({ state }) => state?.control.state === "human_control");
  person.send({ hand_back: {} });
  await person.receive(({ state }) => state?.control.state !== "human_control");
  using second = await LiveClient.join(gatewayUrl, key, { viewer_key: "the secret of another person" });
  expect((await second.closed).reason).toContain("expired-key");
}

/** Types into the form of a page and hands it to a person in the middle. `callTool` may use a different gateway each time. */
export async function doTask(callTool: CallTool, gatewayUrl: string, page: string): Promise<void> {
  const call: CallTool = async (name, args) => {
    const output = await callTool(name, args);
    if (output.isError) throw new Error(`${name}: ${output.text}`);
    return output;
  };
  const started = await call("start_session");
  const { session_id } = started.structured;
  const opened = await call("navigate", { session_id, url: page });
  expect(opened.structured.outcome).toBe("done: HTTP status 200");
  const ref = refOf(opened, "textbox");
  const typed = await call("act", { session_id, actions: [{ kind: "type", ref, text: "ada" }] });
  expect([typed.structured.outcome, typed.text]).toEqual(["done", expect.stringContaining('value="ada"')]);

  const asked = await call("ask_person", { session_id, instructions: "Log in." });
  expect(asked.structured).toMatchObject({ status: "waiting_for_person", next: expect.stringContaining("wait") });
  const { handle, url } = asked.structured;
  const early = await call("wait", { session_id, handle, seconds: 1 });
  expect(early.structured).toMatchObject({ status: "waiting_for_person", handle });
  const waiting = call("wait", { session_id, handle, seconds: 40 });
  await takeOver(gatewayUrl, url);
  expect((await waiting).structured.status).toBe("done");

  const seen = await call("observe", { session_id });
  expect(seen.structured.page).toContain('value="ada"');
  const { structured: listed } = await call("list_sessions");
  expect(listed.sessions).toMatchObject([{ session_id, made_by: "mcp" }]);
  expect((await call("end_session", { session_id })).structured.status).toBe("ended");
  const late = await callTool("observe", { session_id });
  expect([late.isError, JSON.parse(late.text)]).toEqual([
    true,
    expect.objectContaining({ error: "session-destroyed", next: expect.stringContaining("start_session") }),
  ]);
}
