import type { IncomingMessage } from "node:http";
import type { FieldFault, Problem } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { type ErrorSlug, errorTable, extensionsOf } from "../../src/platform/error-table.ts";
import { html } from "../../src/platform/html.ts";
import { inline, prose } from "./prose.ts";
import { page, unscripted } from "./shell.ts";

/** Returns whether a browser loads the URL as a page. Requests with a bearer come from programs. */
export const wantsPage = ({ method, headers }: Pick<IncomingMessage, "method" | "headers">): boolean =>
  (method === "GET" || method === "HEAD") &&
  headers.authorization === undefined &&
  /^\s*text\/html\s*(?:[;,]|$)/i.test(headers.accept ?? "");

/** Members of a problem that its page shows. */
type ShownProblem = Pick<Problem, "type" | "title" | "status"> &
  Partial<Pick<Problem, "detail" | "instance"> & { readonly errors: readonly Pick<FieldFault, "field" | "message">[] }>;

/** Renders the page of a problem's type URI. */
export function renderError(slug: ErrorSlug): string {
  const { status, title, about } = errorTable[slug];
  const rows = Object.entries(extensionsOf(slug)).map(
    ([name, { about: meaning, values, optional }]) => html`<tr>
<th scope="row"><code>${name}</code> <span class="type">${optional ? "optional" : "always present"}</span></th>
<td>${inline(meaning)} ${values && values.length > 1 && inline(`One of ${values.map((value) => `\`${value}\``).join(", ")}.`)}</td></tr>`,
  );
  return page(
    `${title} (${status})`,
    html`<main class="single"><p class="status">HTTP ${status}, <code>${slug}</code></p><h1>${title}</h1>
${prose(about)}
${rows.length > 0 && html`<h4>Members besides the standard ones</h4><table>${rows}</table>`}
<p><a href="/docs">API reference</a></p></main>`,
  );
}

/** Renders the page of an unknown type URI, with a list of known types. */
export function renderUnknownError(): string {
  const rows = Object.entries(errorTable).map(
    ([slug, { status, title }]) =>
      html`<tr><th scope="row"><a href="${slug}"><code>${slug}</code></a></th><td>${status} ${title}</td></tr>`,
  );
  return page(
    "No such error",
    html`<main class="single"><p class="status">HTTP 404</p><h1>No such error</h1>
<p>The service has no error with this name. These are its errors:</p><table>${rows}</table>
<p><a href="/docs">API reference</a></p></main>`,
  );
}

/** Renders a problem document as a page. */
export function renderProblem({ type, title, status, detail, instance, errors = [] }: ShownProblem): string {
  const rows = errors.map(
    ({ field, message }) => html`<tr><th scope="row"><code>${field}</code></th><td>${message}</td></tr>`,
  );
  return page(
    `${title} (${status})`,
    html`<main class="single"><p class="status">HTTP ${status}</p><h1>${title}</h1>
${detail !== undefined && html`<p>${detail}</p>`}
${rows.length > 0 && html`<table>${rows}</table>`}
${requestLine(instance)}
<p><a href="${type}">About this error</a></p>
<p><a href="/docs">API reference</a></p></main>`,
    unscripted,
  );
}

const requestLine = (id = "") => html`<p class="rule">Request id: <code>${id}</code></p>`;

/** Renders the page of an unknown address. */
export function renderNotFound(path: string, requestId: string): string {
  const isTry = path.startsWith("/try/");
  return page(
    "Nothing here",
    html`<main class="single"><p class="status">HTTP 404</p><h1>Nothing here</h1>
<p>The service has no page and no endpoint at this address.</p>
${isTry && html`<p>The link to try a session changes at each start of the service. Open the link that it printed last.</p>`}
${requestLine(requestId)}
<p><a href="/">Home</a></p>
<p><a href="/docs">API reference</a></p></main>`,
    unscripted,
  );
}
