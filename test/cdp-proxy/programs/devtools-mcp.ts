// chrome-devtools-mcp as an agent runs it: performs all actions of a client, then waits to be killed.
import { spawn } from "node:child_process";
import { McpClient } from "../../support/mcp-client.ts";
import type { Deeds, Orders } from "../../support/outside-client.ts";

const orders: Orders = JSON.parse(process.argv[2] ?? "");
const server = spawn("npx", ["chrome-devtools-mcp", "--wsEndpoint", orders.url], { stdio: ["pipe", "pipe", "ignore"] });
const mcp = await McpClient.connect(server);

/** Returns the number and title of the page whose line in `list_pages` matches: `2: Title (address) [selected]`. */
async function find(line: RegExp): Promise<{ number: number; title: string }> {
  for (;;) {
    const [, number, title = ""] = line.exec(await mcp.read("list_pages")) ?? [];
    if (number !== undefined) return { number: Number(number), title };
  }
}

const { number: pageId } = await find(/^(\d+): (Client) \(.*client\.html\)/m);
const snapshot = await mcp.read("take_snapshot", { pageId });
const named = (name: string) => {
  const line = snapshot.split("\n").find((each) => new RegExp(`(textbox|button|link) "${name}"`).test(each));
  return { pageId, uid: /uid=(\S+)/.exec(line ?? "")?.[1] };
};
/** Waits for a page title with a prefix and returns the title. */
async function title(beginning: string): Promise<string> {
  const script = `async () => {
    while (!document.title.startsWith("${beginning}")) await new Promise((resolve) => setTimeout(resolve, 50));
    return document.title;
  }`;
  const said = await mcp.read("evaluate_script", { pageId, function: script });
  return JSON.parse(/```json\n(.*)\n```/.exec(said)?.[1] ?? "null");
}

await mcp.call("resize_page", { pageId, width: 500, height: 400 });
await mcp.call("fill", { ...named("Name"), value: "Grace" });
await mcp.call("click", named("Greet"));
const form = await title("Hello");

await mcp.call("click", named("Popup"));
const { number: opened, title: popup } = await find(/^(\d+): (Plain) \(/m);
await mcp.call("close_page", { pageId: opened });

// No MCP tool reports downloads. The bytes are read from the session.
await mcp.call("click", named("Download"));
await mcp.call("upload_file", { ...named("File"), filePaths: [orders.file] });
const upload = await title("file ");

const asked = /^confirm: (.*)\.$/m.exec(await mcp.read("click", named("Ask")))?.[1] ?? "";
await mcp.call("handle_dialog", { pageId, action: "accept" });
const dialog = [asked, await title("confirm")] as const;

const shot = (await mcp.call("take_screenshot", { pageId })).find(({ type }) => type === "image");
const screenshot = Buffer.from(shot?.data ?? "", "base64").toString("latin1", 1, 4);
const deeds: Deeds = { form, popup, download: null, upload, dialog, screenshot };

// Leftovers: slow pages and a page in its own context.
await mcp.call("emulate", { pageId, networkConditions: "Slow 3G" });
await mcp.call("new_page", { url: orders.page, isolatedContext: "own" });
console.log(JSON.stringify(deeds));
setInterval(() => undefined, 60_000);
