// Verifies and prints webhooks: WEBHOOK_SECRET=whsec_... PORT=3000 node receive-webhooks.ts
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { webhooks } from "@pilothouse/sdk";

const { WEBHOOK_SECRET: secret = "", PORT = "3000" } = process.env;
/** Ids of processed events. An event can be delivered more than once, so a real receiver stores them. */
const processed = new Set<string | undefined>();

const server = createServer(async (request, response) => {
  try {
    const event = await webhooks.verify({ body: await buffer(request), headers: request.headers, secret });
    if (!processed.has(event.id)) console.log(event.type, JSON.stringify(event.data));
    processed.add(event.id);
    response.writeHead(204).end();
  } catch (error) {
    console.error("refused a delivery:", error);
    response.writeHead(400).end();
  }
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(`listening on port ${PORT}`));
