// Reads a page by the tools of the MCP server: node read-by-mcp.ts https://example.com/
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url = ""] = process.argv.slice(2);
const { PILOTHOUSE_URL = "http://localhost:8080", PILOTHOUSE_API_KEY = "" } = process.env;
const client = new Client({ name: "example", version: "1.0.0" });
const headers = { authorization: `Bearer ${PILOTHOUSE_API_KEY}` };
await client.connect(new StreamableHTTPClientTransport(new URL(`${PILOTHOUSE_URL}/mcp`), { requestInit: { headers } }));

/** Calls a tool, and returns its text and its structured content. */
async function call(name: string, args: Record<string, unknown> = {}) {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: args });
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  if (isError) throw new Error(`${name} failed: ${text}`);
  return { text, structured: structuredContent as Record<string, unknown> };
}

const { tools } = await client.listTools();
console.log(tools.map(({ name }) => name).join(" "));
const { session_id } = (await call("start_session")).structured;
try {
  await call("navigate", { session_id, url });
  console.log((await call("read", { session_id })).text);
} finally {
  await call("end_session", { session_id });
  await client.close();
}
