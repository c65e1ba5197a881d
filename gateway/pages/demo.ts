import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { pageHeadersFor } from "./content-policy.ts";

export interface Demo {
  readonly url: string;
  readonly port: number;
  /** `host:port` that the egress guard must allow. */
  readonly hostPort: string;
  stop(): Promise<void>;
}

const style = `
:root { --paper: #f3f5f9; --card: #ffffff; --ink: #1c2330; --soft: #5a6577; --line: #ccd3df; --accent: #1859c9; --on: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #12161d; --card: #1a202b; --ink: #e4e8ef; --soft: #98a3b5; --line: #364053; --accent: #7db0ff; --on: #10203b; }
}
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper); color: var(--ink);
  font: 17px/1.5 system-ui, sans-serif; }
main { box-sizing: border-box; width: min(31rem, 100vw - 2rem); padding: 2.2rem 2.4rem 2.4rem; background: var(--card); border-radius: 16px;
  box-shadow: 0 12px 40px #0000001f; }
h1 { margin: 0 0 .3rem; font-size: 1.7rem; }
p { margin: 0 0 1.4rem; color: var(--soft); }
label { display: block; margin-bottom: .3rem; font-size: .95rem; }
input { box-sizing: border-box; width: 100%; padding: .7rem .9rem; font: inherit; color: inherit; background: none;
  border: 1px solid var(--line); border-radius: 9px; }
[hidden] { display: none; }
button { width: 100%; margin-top: 1rem; padding: .75rem; font: inherit; font-weight: 600; color: var(--on);
  background: var(--accent); border: none; border-radius: 9px; cursor: pointer; }
#thanks { margin: 0; font-size: 1.15rem; color: var(--ink); overflow-wrap: anywhere; }
`;

const script = `
const [form, thanks, out] = ["form", "#thanks", "#out"].map((selector) => document.querySelector(selector));
const show = (text) => {
  thanks.textContent = text;
  thanks.hidden = out.hidden = text === "";
  form.hidden = text !== "";
};
const keep = (name, seconds) => {
  document.cookie = "demo_name=" + encodeURIComponent(name) + "; max-age=" + seconds + "; samesite=lax";
};
const [, known] = /(?:^|; )demo_name=([^;]*)/.exec(document.cookie) ?? [];
if (known) show("Welcome back, " + decodeURIComponent(known) + "! You are logged in.");
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const name = document.querySelector("#name").value.trim() || "stranger";
  keep(name, 2592000);
  show("Thank you, " + name + "! You are logged in.");
});
out.addEventListener("click", () => {
  keep("", 0);
  show("");
});
`;

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Pilothouse demo</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Welcome aboard</h1>
<p>A page to try. Your name logs you in.</p>
<form>
<label for="name">Your name</label>
<input id="name" name="name" autocomplete="off" maxlength="100">
<button id="go">Log in</button>
</form>
<p id="thanks" role="status" hidden></p>
<button id="out" type="button" hidden>Log out</button>
</main>
<script>${script}</script>
</body>
</html>
`;

const headers = {
  ...pageHeadersFor(style, script),
  "content-length": Buffer.byteLength(page),
  "cache-control": "no-store",
};

/** Serves the demo page on its own listener, so that sessions allowed to reach the demo cannot reach the service. */
export async function startDemo(host: string, port = 0): Promise<Demo> {
  const server = createServer(
    { requestTimeout: 5_000, headersTimeout: 5_000, keepAliveTimeout: 5_000, maxHeaderSize: 8_192 },
    answer,
  );
  server.maxConnections = 100;
  server.setTimeout(10_000);
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the demo page has no port");
  const hostPort = `${address.family === "IPv6" ? `[${address.address}]` : address.address}:${address.port}`;
  return {
    url: `http://${hostPort}/`,
    port: address.port,
    hostPort,
    async stop() {
      if (server.listening) {
        const closed = once(server, "close");
        server.close();
        server.closeAllConnections();
        await closed;
      }
    },
  };
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const isHead = request.method === "HEAD";
  if (request.method !== "GET" && !isHead) {
    response.writeHead(405, { allow: "GET, HEAD", connection: "close" }).end();
  } else if (request.url?.split("?")[0] === "/") {
    response.writeHead(200, headers).end(isHead ? undefined : page);
  } else {
    response.writeHead(404, { "content-type": "text/plain" }).end(isHead ? undefined : "There is one page: /\n");
  }
}
