import { type Html, html } from "../../src/platform/html.ts";
import type {
  Introduction,
  MediaType,
  OpenApiDocument,
  Operation,
  Parameter,
  Reference,
  Response,
  WebSocketOperation,
} from "../openapi/model.ts";
import { curlOf } from "./curl.ts";
import { fieldTable, lastPart, parameterTable, type Resolver } from "./docs-schema.ts";
import { inline, prose } from "./prose.ts";
import { sdkSampleOf } from "./sdk-samples.ts";

/** A method with its verb and path. */
export interface Entry<O extends Introduction> {
  readonly verb: string;
  readonly path: string;
  readonly operation: O;
}

/** Renders the reference of an operation. */
export function operationSection(entry: Entry<Operation>, document: OpenApiDocument, resolver: Resolver): Html {
  const { operationId, description, requestBody, parameters = [], responses } = entry.operation;
  // Header parameters are references, because operations share them.
  const headers = parameters.filter((parameter) => "$ref" in parameter);
  const own = parameters.flatMap((parameter) => ("$ref" in parameter ? [] : [parameter]));
  const all = Object.entries(responses).map(([status, response]) => [status, resolver.response(response)] as const);
  const answers = all.filter(([status]) => Number(status) < 400);
  const problems = all.filter(([status]) => Number(status) >= 400);
  const bodies = Object.values(requestBody?.content ?? {});
  return html`<section class="operation" id="${operationId}">${heading(entry)}
<div>${prose(description)}
${ownParameters(own, resolver)}
${bodies.map(({ schema }) => schema && html`<h4>Body</h4>${fieldTable(schema, resolver)}`)}
${answers.map(([status, response]) => answer(status, response, resolver))}
<h4>Headers</h4>${headerLinks(headers, resolver)}
<h4>Problems</h4>${problemList(problems, resolver)}</div>
<div class="examples"><h4>Request</h4>${code(curlOf(entry, own, document))}
${sdkSample(entry, own)}
${bodies.map(kindsOf)}
${answers.map(([status, { content = {} }]) => Object.values(content).map((media) => exampleOf(status, media)))}</div>
</section>`;
}

/** Renders the reference of a WebSocket. */
export function streamSection(entry: Entry<WebSocketOperation>, resolver: Resolver): Html {
  const { operationId, description, parameters, client, server, example } = entry.operation;
  return html`<section class="operation" id="${operationId}">${heading(entry)}
<div>${prose(description)}
${ownParameters(parameters, resolver)}
<h4>Messages of the client</h4>${fieldTable(client, resolver)}
<h4>Messages of the server</h4>${fieldTable(server, resolver)}</div>
<div class="examples"><h4>Message</h4>${code(JSON.stringify(example, null, 2))}</div></section>`;
}

/** Renders the payload of an event. */
export function eventSection({ path, operation }: Entry<Operation>, resolver: Resolver): Html {
  const { schema, example } = operation.requestBody?.content["application/json"] ?? {};
  const data = schema?.properties?.data;
  return html`<section class="operation" id="${operation.operationId}"><header><h3><code>${path}</code></h3></header>
<div>${prose(operation.description)}${data && html`<h4>data</h4>${fieldTable(data, resolver)}`}</div>
<div class="examples">${example !== undefined && code(JSON.stringify(example, null, 2))}</div></section>`;
}

function heading({ verb, path, operation }: Entry<Introduction>): Html {
  const { operationId, summary } = operation;
  return html`<header><h3><a href="#${operationId}">${summary}</a></h3>
<p class="route"><span class="verb ${verb}">${verb.toUpperCase()}</span> <code>${path}</code></p></header>`;
}

function ownParameters(parameters: readonly Parameter[], resolver: Resolver): Html | undefined {
  return parameters.length > 0 ? html`<h4>Parameters</h4>${parameterTable(parameters, resolver)}` : undefined;
}

/** Renders links to the header parameters, which operations share. The section Headers describes them once. */
function headerLinks(headers: readonly Reference[], resolver: Resolver): Html {
  const links = headers.map((header) => {
    const { name } = resolver.parameter(header);
    return html`<a href="#header-${lastPart(header.$ref)}"><code>${name}</code></a> `;
  });
  return html`<p>${links}</p>`;
}

/** Renders the problems by status, each with a link to its type URI. */
function problemList(problems: readonly (readonly [string, Response])[], resolver: Resolver): Html {
  const rows = problems.map(([status, { content = {} }]) => {
    const schemas = Object.values(content).flatMap(({ schema = {} }) => schema.oneOf ?? [schema]);
    const uris = schemas.map((schema) => String(resolver.schema(schema).properties?.type?.const ?? ""));
    const links = uris.map((uri) => html`<a href="${uri}"><code>${lastPart(uri)}</code></a> `);
    return html`<li><b>${status}</b> ${links}</li>`;
  });
  return html`<ul class="problems">${rows}</ul>`;
}

function answer(status: string, { description, content = {} }: Response, resolver: Resolver): Html {
  const bodies = Object.entries(content).map(([type, { schema }]) => {
    const item = schema?.["x-event-data"];
    const shown = item ?? schema;
    const summary = item ? "Fields of each event's data" : "Fields";
    const fields = shown && html`<details><summary>${summary}</summary>${fieldTable(shown, resolver)}</details>`;
    return html`<p class="type">${type}</p>${fields}`;
  });
  return html`<h4>Answer ${status}</h4><p>${inline(description)}</p>${bodies}`;
}

function sdkSample(entry: Entry<Operation>, parameters: readonly Parameter[]): Html | undefined {
  const sample = sdkSampleOf(entry, parameters);
  return sample && html`<h4>TypeScript</h4>${code(sample.typescript)}<h4>Python</h4>${code(sample.python)}`;
}

/** Renders an example body for each kind. */
function kindsOf({ examples = {} }: MediaType): Html | undefined {
  const kinds = Object.entries(examples).map(
    ([kind, { value }]) => html`<h4>Body: ${kind}</h4>${code(JSON.stringify(value, null, 2))}`,
  );
  return kinds.length > 0 ? html`<details><summary>Body of each kind</summary>${kinds}</details>` : undefined;
}

function exampleOf(status: string, { example }: MediaType): Html | undefined {
  const text = typeof example === "string" ? example : JSON.stringify(example, null, 2);
  return example === undefined ? undefined : html`<h4>Answer ${status}</h4>${code(text)}`;
}

function code(text: string): Html {
  return html`<pre tabindex="0"><code>${text}</code></pre>`;
}
