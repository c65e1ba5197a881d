import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { clockPage } from "./clock-page.ts";

/** A site on loopback with the measured pages. */
export interface Site extends AsyncDisposable {
  /** `host:port`, for EGRESS_ALLOW. */
  readonly host: string;
  /** A form of 30 inputs and a select, with a table of 116 rows. */
  readonly formUrl: string;
  /** A scrolling page that shows the time; `?still` stops the scrolling. */
  readonly clockUrl: string;
  /** A page that sends 40 requests, 10 of which fail, and writes 40 console lines. */
  readonly requestsUrl: string;
  /** Returns the URL of a page with a table, with a button per row. */
  tableUrl(rows: number): string;
  /** Returns the URL of a page whose script creates text of the given size. */
  textUrl(bytes: number): string;
}

export async function startSite(): Promise<Site> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://site");
    if (pathname === "/form") return answer(response, 200, formPage);
    if (pathname === "/requests") return answer(response, 200, requestsPage);
    if (pathname === "/found") return answer(response, 200, "found");
    if (pathname === "/clock") return answer(response, 200, clockPage);
    if (pathname === "/table") return answer(response, 200, tablePage(Number(searchParams.get("rows"))));
    if (pathname === "/text") return answer(response, 200, textPage(Number(searchParams.get("bytes"))));
    return answer(response, 404, "");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the site does not listen");
  const host = `127.0.0.1:${address.port}`;
  return {
    host,
    formUrl: `http://${host}/form`,
    clockUrl: `http://${host}/clock`,
    requestsUrl: `http://${host}/requests`,
    tableUrl: (rows) => `http://${host}/table?rows=${rows}`,
    textUrl: (bytes) => `http://${host}/text?bytes=${bytes}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function answer(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, { "content-type": "text/html; charset=utf-8" }).end(html);
}

function times(count: number, write: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => write(index)).join("\n");
}

const formPage = `<!DOCTYPE html><title>Order</title><link rel="icon" href="data:,">
<style>body { font: 14px sans-serif } label { display: inline-block; width: 24% } tr:nth-child(even) { background: #eef }</style>
<h1>Order</h1>
<button id="go" type="button" onclick="this.dataset.taps = Number(this.dataset.taps ?? 0) + 1">Go</button>
<select id="size"><option value="small">Small</option><option value="large">Large</option></select>
<form>${times(30, (index) => `<label>Field ${index} <input name="field${index}" value="value ${index}"></label>`)}</form>
<table>${times(116, (index) => `<tr><td>${index}</td><td>Item ${index}</td><td>${index * 7} EUR</td></tr>`)}</table>`;

const requestsPage = `<!DOCTYPE html><title>Requests</title><link rel="icon" href="data:,"><script>
for (let index = 0; index < 40; index += 1) {
  console.log("request", index);
  fetch(index % 4 === 0 ? "/missing?item=" + index : "/found?item=" + index).catch(() => undefined);
}
</script>`;

const tablePage = (rows: number): string => `<!DOCTYPE html><title>Stock</title><link rel="icon" href="data:,">
<h1>Stock</h1><table>${times(rows, (index) => {
  return `<tr><td>${index}</td><td>Item ${index}</td><td>${index * 7} EUR</td><td><button>Buy ${index}</button></td></tr>`;
})}</table>`;

/** Creates text in blocks of 64 KiB: a single text node of the whole size would take minutes to lay out. */
function textPage(bytes: number): string {
  return `<!DOCTYPE html><title>Text</title><link rel="icon" href="data:,"><body style="display: none"><script>
const block = "lorem ipsum dolor sit amet, consectetur adipiscing elit sed do. ".repeat(1024);
for (let left = ${bytes}; left > 0; left -= block.length) {
  const element = document.createElement("p");
  element.textContent = block.slice(0, left);
  document.body.append(element);
}
</script>`;
}
