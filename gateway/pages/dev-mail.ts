import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { MailOutbox, OutboxMail } from "../../src/mail/mail-outbox.ts";
import { mailStyle } from "../../src/mail/mail-text.ts";
import { type Html, html } from "../../src/platform/html.ts";
import { isLoopback } from "../../src/platform/loopback.ts";
import { hashSecret, matchesHash } from "../../src/platform/secrets/secrets.ts";
import { forwardingHeaders, plainAddress } from "../peer.ts";
import { pageHeadersFor } from "./content-policy.ts";
import { page, unscripted, unscriptedHeaders } from "./shell.ts";
import { style } from "./style.ts";

const ownStyle = `
.mails { margin: 1.2rem 0; padding: 0; list-style: none; }
.mails li { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .1rem 1rem; padding: .7rem 0;
  border-top: 1px solid var(--line); color: var(--soft); font-size: 13px; }
.mails a { flex: 1 1 100%; padding: .2rem 0; font-size: 15px; font-weight: 600; }
.mails :is(a, span) { min-width: 0; overflow-wrap: anywhere; }
`;

const listHeaders = pageHeadersFor(style + ownStyle, "");

/** Returns the path of the outbox. */
export const outboxPath = (key: string): string => `/dev/mail?key=${key}`;

/**
 * Mounts the outbox of embedded mode, as HTML for browsers and as JSON for other clients. Responds with 404 unless the
 * request comes from this machine and contains the secret of the link that the service printed.
 */
export async function mountOutbox(fastify: FastifyInstance, outbox: MailOutbox): Promise<void> {
  const keyHash = hashSecret(outbox.key);
  type Query = { Querystring: { key?: string } };

  const isAllowed = ({ headers, query, socket }: FastifyRequest<Query>): boolean =>
    isLoopback(plainAddress(socket.remoteAddress)) &&
    forwardingHeaders.every((name) => headers[name] === undefined) &&
    matchesHash(query.key ?? "", keyHash);

  fastify.get<Query>("/dev/mail", async (request, reply) => {
    if (!isAllowed(request)) return refuse(reply);
    const mails = await outbox.list();
    reply.header("cache-control", "no-store");
    if (!request.headers.accept?.includes("text/html")) return { mails: mails.map(toJson) };
    return reply.headers(listHeaders).send(listPage(mails, outbox.key));
  });

  fastify.get<Query & { Params: { id: string } }>("/dev/mail/:id", async (request, reply) => {
    const mail = isAllowed(request) && (await outbox.find(request.params.id));
    if (!mail) return refuse(reply);
    return reply.headers(pageHeadersFor(mailStyle, "")).header("cache-control", "no-store").send(mail.html);
  });
}

/** Responds with 404 and a page that explains how to open the outbox. */
function refuse(reply: FastifyReply): FastifyReply {
  const body = html`<main class="single"><p class="status">HTTP 404</p><h1>Nothing here</h1>
<p>To read the e-mails, open the link that the service printed at its last start, on the same machine.</p></main>`;
  return reply
    .code(404)
    .headers(unscriptedHeaders)
    .send(page("Nothing here", body, unscripted));
}

function toJson({ id, to, subject, kind, writtenAt, text, html: body, button }: OutboxMail) {
  const links = button ? [button.url] : [];
  return { id, to, subject, kind, created_at: writtenAt.toISOString(), text, html: body, links };
}

function listPage(mails: readonly OutboxMail[], key: string): string {
  const items = mails.map(
    ({ id, to, subject, writtenAt }): Html => html`<li><a href="/dev/mail/${id}?key=${key}">${subject}</a>
<span>${to}</span> <time datetime="${writtenAt.toISOString()}">${writtenAt.toISOString().slice(0, 19).replace("T", " ")} UTC</time></li>
`,
  );
  return page(
    "E-mails of this service",
    html`<main class="single"><h1>E-mails of this service</h1>
<p>E-mails of this service are kept here instead of being sent, because <code>SMTP_URL</code> is not set. Programs get them as JSON.</p>
${mails.length === 0 ? html`<p>There are no e-mails yet.</p>` : html`<ul class="mails">${items}</ul>`}</main>`,
    { style: ownStyle, script: "" },
  );
}
