// Sends 250 key events a second over gRPC: PROTO=../../proto node stream-input.ts https://example.com/
import { setInterval } from "node:timers/promises";
import { credentials, Metadata, makeClientConstructor, type ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { type AgentSession, Pilothouse } from "@pilothouse/sdk";

const [url = ""] = process.argv.slice(2);
const { PROTO = "../../proto", GRPC_ADDRESS = "localhost:8081", PILOTHOUSE_API_KEY = "" } = process.env;
const [perSecond, total] = [250, 1_000];
const client = new Pilothouse();
const agent = await client.request<AgentSession>("POST", "/v1/agent-sessions", { body: {} });
await using session = await client.sessions.get(agent.session_id);
await session.goto(url);
await client.request("POST", `/v1/agent-sessions/${agent.id}/takeover`, { body: { client_id: "example" } });

const definition = loadSync("pilothouse/v1/agent_input.proto", { includeDirs: [PROTO], keepCase: true });
const service = definition["pilothouse.v1.AgentInputService"] as ServiceDefinition;
const InputClient = makeClientConstructor(service, "AgentInputService");
const metadata = new Metadata();
metadata.set("authorization", `Bearer ${PILOTHOUSE_API_KEY}`);
const input = new InputClient(GRPC_ADDRESS, credentials.createInsecure());
const stream = input.StreamInput(metadata);

let sent = 0;
const began = performance.now();
for await (const _ of setInterval(4)) {
  const due = Math.min(total, ((performance.now() - began) * perSecond) / 1_000);
  for (; sent < due; sent += 1) {
    const event = sent % 2 === 0 ? { key_down: { key: "a" } } : { key_up: { key: "a" } };
    stream.write({ agent_session_id: agent.id, client_id: "example", sequence: sent + 1, events: [event] });
  }
  if (sent === total) break;
}
stream.end();
let accepted = 0;
for await (const { acknowledgement } of stream) accepted = acknowledgement?.accepted ?? accepted;
console.log(`${accepted} events in ${Math.round(performance.now() - began)} ms`);
input.close();
