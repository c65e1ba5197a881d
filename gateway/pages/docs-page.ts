import { type Html, html } from "../../src/platform/html.ts";
import type { Introduction, OpenApiDocument, Operation } from "../openapi/model.ts";
import { type Entry, eventSection, operationSection, streamSection } from "./docs-operation.ts";
import { headerTable, Resolver } from "./docs-schema.ts";
import { prose } from "./prose.ts";
import { page } from "./shell.ts";

/** Renders the reference page of an OpenAPI document, complete without script or external resources. */
export function renderDocs(document: OpenApiDocument): string {
  const { info } = document;
  const title = `${info.title} API reference`;
  return page(
    title,
    html`<div class="reference">
<nav aria-label="Reference"><p class="name"><a href="#top"><b>${info.title}</b></a> ${info.version}</p>
<a href="/v1/openapi.json">OpenAPI 3.1</a> ·
<a href="/docs/webhooks.md">Receive webhooks</a>${groupsOf(document).map(navGroup)}
<strong><a href="#events">Events</a></strong><strong><a href="#stream-events">Events of streams</a></strong><strong><a href="#headers">Headers</a></strong></nav>
<main id="top"><h1>${title}</h1>
<div class="intro">${prose(info.description)}</div>
<p>Base address: <code>${document.servers[0]?.url}</code>. Send your key as <code>Authorization: Bearer &lt;key&gt;</code>.</p>
<p>The SDKs read the address from <code>PILOTHOUSE_URL</code> and the key from <code>PILOTHOUSE_API_KEY</code>. In their examples,
<code>client</code> is <code>new Pilothouse()</code> of <code>@pilothouse/sdk</code> in TypeScript and <code>Pilothouse()</code> of
<code>pilothouse</code> in Python, and <code>session</code> is a result of <code>client.sessions</code>.</p>
${sectionsOf(document)}
</main></div>`,
  );
}

function sectionsOf(document: OpenApiDocument): Html[] {
  const resolver = new Resolver(document);
  const { webhooks = {}, "x-stream-events": streamEvents = {}, components } = document;
  const groups = groupsOf(document).map(
    ({ name, description, operations, streams }) => html`<h2 id="${name}">${words(name)}</h2>${prose(description)}
${operations.map((entry) => operationSection(entry, document, resolver))}
${streams.map((entry) => streamSection(entry, resolver))}`,
  );
  const events = html`<h2 id="events">Events</h2><p>Events of event streams and webhooks, by type.</p>
${entriesOf(webhooks).map((entry) => eventSection(entry, resolver))}
<h2 id="stream-events">Events of streams only</h2><p>Events that webhooks do not deliver.</p>
${entriesOf(streamEvents).map((entry) => eventSection(entry, resolver))}`;
  const headers = html`<h2 id="headers">Headers</h2><p>Request headers, for the operations that list them:</p>
${headerTable(components.parameters, resolver)}
<p>Response headers:</p>
${headerTable(components.headers, resolver)}`;
  return [...groups, events, headers];
}

/** Returns the operations and streams of each service. */
function groupsOf({ tags, paths, "x-websockets": websockets = {} }: OpenApiDocument) {
  const operations = entriesOf(paths);
  const streams = Object.entries(websockets).map(([path, operation]) => ({ verb: "ws", path, operation }));
  return tags.map(({ name, description }) => {
    const isOwn = ({ operation }: Entry<Introduction>) => operation.tags.includes(name);
    return { name, description, operations: operations.filter(isOwn), streams: streams.filter(isOwn) };
  });
}

function entriesOf(paths: OpenApiDocument["paths"]): Entry<Operation>[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, operation]) => ({ verb, path, operation })),
  );
}

function navGroup({ name, operations, streams }: ReturnType<typeof groupsOf>[number]): Html {
  const links = [...operations, ...streams].map(({ verb, operation: { operationId, summary } }) => {
    const method = html`<span class="verb ${verb}">${verb.toUpperCase()}</span>`;
    return html`<li><a href="#${operationId}">${method} ${summary}</a></li>`;
  });
  return html`<strong><a href="#${name}">${words(name)}</a></strong><ul>${links}</ul>`;
}

/** Converts `AgentSession` to `Agent session`, and `ApiKey` to `API key`. */
function words(name: string): string {
  const spaced = name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return spaced.replace(/^(api|llm|mfa)\b/i, (acronym) => acronym.toUpperCase());
}
