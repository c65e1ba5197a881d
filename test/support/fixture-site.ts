import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { Secret, TOTP } from "otpauth";
import { TestSite } from "./test-site.ts";

const pages = new URL("pages/", import.meta.url);

/** Credentials for `/login.html`. The seed is that of RFC 6238 in base 32. */
export const login = { password: 'k9 "correct" horse & cart', seed: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" };

const isCode = (token: string): boolean =>
  TOTP.validate({ token, secret: Secret.fromBase32(login.seed), algorithm: "SHA1", window: 1 }) !== null;

type Answer = (request: IncomingMessage, response: ServerResponse, url: URL) => void;

/** Deterministic bytes that compression and text decoding would change. */
export const noise = (bytes: number): Buffer =>
  createHash("shake256", { outputLength: bytes }).update("noise").digest();

/** Responses in addition to the files of `pages/`. */
const answers: Readonly<Record<string, Answer>> = {
  "/auth": (_request, response) => {
    response.writeHead(401, { "www-authenticate": 'Basic realm="fixture"', "content-type": "text/html" });
    response.end("<title>Unauthorized</title>who are you?");
  },
  "/no-content": (_request, response) => void response.writeHead(204).end(),
  "/reset-content": (_request, response) => void response.writeHead(205).end(),
  "/redirect-loop": (_request, response) => void response.writeHead(302, { location: "/redirect-loop" }).end(),
  "/to-private": (_request, response) => void response.writeHead(302, { location: "http://127.0.0.2:8765/" }).end(),
  "/redirect": (_request, response) => void response.writeHead(302, { location: "/plain.html" }).end(),
  "/redirect-to": (_request, response, url) =>
    void response.writeHead(302, { location: url.searchParams.get("to") ?? "/" }).end(),
  "/not-found": (_request, response) =>
    void response.writeHead(404, { "content-type": "text/html" }).end("<title>Nowhere</title>"),
  "/download": (_request, response) => {
    response.writeHead(200, { "content-disposition": 'attachment; filename="report.csv"', "content-type": "text/csv" });
    response.end("a,b\n1,2\n");
  },
  "/marker": (_request, response, url) => {
    response.writeHead(200, { "content-disposition": 'attachment; filename="marker.txt"' });
    response.end(url.searchParams.get("text"));
  },
  "/named": (_request, response, url) => {
    const name = encodeURIComponent(url.searchParams.get("name") ?? "");
    response.writeHead(200, { "content-disposition": `attachment; filename*=UTF-8''${name}` });
    response.end("named");
  },
  "/sized-download": (_request, response, url) => {
    response.writeHead(200, { "content-disposition": 'attachment; filename="sized.bin"' });
    response.end(Buffer.alloc(Number(url.searchParams.get("bytes"))));
  },
  "/noise": (_request, response, url) => {
    response.writeHead(200, { "content-disposition": 'attachment; filename="noise.bin"' });
    response.end(noise(Number(url.searchParams.get("bytes"))));
  },
  "/signed-in": (_request, response, url) => {
    const [user = "", password = "", code = ""] = ["user", "password", "code"].map((name) =>
      url.searchParams.get(name),
    );
    const isRight = password === login.password && isCode(code ?? "");
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.end(`<title>${isRight ? `Welcome ${user}` : "Refused"}</title><p>${password} is right: ${isRight}</p>`);
  },
  "/uploaded": (request, response) => {
    void listForm(request).then((form) => {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
      response.end(`<title>received ${JSON.stringify(form)}</title>`);
    });
  },
  "/huge-download": (_request, response) => {
    response.writeHead(200, { "content-disposition": 'attachment; filename="huge.bin"' });
    const part = Buffer.alloc(1024 * 1024);
    const push = () => {
      while (!response.destroyed && response.write(part));
      if (!response.destroyed) response.once("drain", push);
    };
    push();
  },
  "/silent": () => undefined,
  "/slow": (_request, response, url) => {
    const ms = Number(url.searchParams.get("ms") ?? 300);
    const send = () => response.writeHead(200, { "content-type": "text/html" }).end("<title>Slow</title>");
    const timer = setTimeout(send, ms);
    response.on("close", () => clearTimeout(timer));
  },
  "/endless-document": (_request, response) => {
    response.writeHead(200, { "content-type": "text/html" }).write("<!DOCTYPE html><title>Endless</title>");
    const timer = setInterval(() => response.write("<p>more</p>"), 50);
    response.on("close", () => clearInterval(timer));
  },
  "/endless-check": (_request, response) => {
    response.writeHead(403, { "content-type": "text/html" });
    response.end("<title>Human verification</title><button>I am human</button><img src=/silent>");
  },
  "/text": (_request, response, url) => {
    const lines = Number(url.searchParams.get("megabytes")) * 16_384;
    response.writeHead(200, { "content-type": "text/html" });
    response.end(`<!DOCTYPE html><title>Text</title><div hidden>${`${"x".repeat(63)}\n`.repeat(lines)}</div>`);
  },
  "/tall": (_request, response, url) => {
    const height = Number(url.searchParams.get("pixels"));
    const end = "position: absolute; top: 100%; margin-top: -10px; width: 100%; height: 10px; background: #090";
    response.writeHead(200, { "content-type": "text/html" });
    response.end(`<!DOCTYPE html><title>Tall</title><body style="margin: 0">
      <div style="position: relative; height: ${height}px; background: #ccf"><div style="${end}"></div></div>`);
  },
  "/nodes": (_request, response, url) => {
    response.writeHead(200, { "content-type": "text/html" });
    const count = Number(url.searchParams.get("count"));
    const tag = url.searchParams.get("tag") ?? "i";
    response.end(
      `<!DOCTYPE html><title>Nodes</title>${`<${tag}>x</${tag}>`.repeat(count)}<button id=last>last</button>`,
    );
  },
};

/** Lists the values of a submitted form's fields, or the names and digests of its files. */
async function listForm(request: IncomingMessage): Promise<[name: string, ...value: string[]][]> {
  const headers = { "content-type": request.headers["content-type"] ?? "" };
  const form = await new Response(await buffer(request), { headers }).formData();
  const list: [string, ...string[]][] = [];
  for (const [name, value] of form) {
    if (typeof value === "string") list.push([name, value]);
    else
      list.push([
        name,
        value.name,
        createHash("sha1")
          .update(await value.bytes())
          .digest("hex"),
      ]);
  }
  return list;
}

/** Small website on loopback that exercises the difficult features of pages. */
export class FixtureSite extends TestSite {
  /** `METHOD path` of every request, in order. */
  readonly requests: string[] = [];
  /** Text typed into `/card-frame.html`, and the host that received it. */
  readonly received: { readonly host: string | undefined; readonly text: string }[] = [];

  url(path: string): string {
    return `http://${this.host}${path}`;
  }

  protected answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", "http://fixture");
    this.requests.push(`${request.method} ${url.pathname}`);
    if (url.pathname === "/heard")
      this.received.push({ host: request.headers.host, text: decodeURIComponent(url.search.slice(1)) });
    const answer = answers[url.pathname];
    if (answer) answer(request, response, url);
    else this.#sendPage(url, response);
  }

  #sendPage(url: URL, response: ServerResponse): void {
    try {
      const html = readFileSync(new URL(`.${url.pathname}`, pages), "utf8");
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(html);
    } catch {
      response.writeHead(404).end();
    }
  }
}
