import type { FastifyInstance } from "fastify";
import { type LinkPage, linkPath } from "../../src/mail/mailer.ts";
import { html } from "../../src/platform/html.ts";
import { pageHeadersFor } from "./content-policy.ts";
import { linkScript } from "./link-script.ts";
import { page } from "./shell.ts";
import { style } from "./style.ts";

/** Page of a link in an e-mail about the status of the service. */
interface LinkAction {
  readonly page: LinkPage;
  readonly title: string;
  readonly about: string;
  readonly button: string;
  /** Path of the method, which takes the token in the query. */
  readonly path: string;
  readonly done: string;
}

const actions: readonly LinkAction[] = [
  {
    page: "status/confirm",
    title: "Subscribe to status updates",
    about: "You receive an e-mail when an incident opens, changes or ends. Each e-mail has a link to unsubscribe.",
    button: "Subscribe",
    path: "/v1/status/subscribe/confirm",
    done: "You are subscribed. You receive an e-mail for each incident from now on.",
  },
  {
    page: "status/unsubscribe",
    title: "Unsubscribe from status updates",
    about: "The address that received the e-mail gets no more e-mails about incidents.",
    button: "Unsubscribe",
    path: "/v1/status/subscribe/unsubscribe",
    done: "You are unsubscribed. You receive no more e-mails about incidents.",
  },
];

const ownStyle = `
.single form { margin: 1.6rem 0; max-width: 24rem; }
.single form button { padding: .65rem 1.3rem; font: inherit; font-weight: 600; color: var(--on-button);
  background: var(--button); border: none; border-radius: 8px; cursor: pointer; }
.single form button:disabled { opacity: .55; cursor: default; }
.single button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.single > p:last-of-type { margin-top: 1.6rem; }
.fault { color: var(--delete); }
`;

const headers = {
  ...pageHeadersFor(style + ownStyle, linkScript, { connect: "'self'" }),
  "cache-control": "no-store",
};

function linkPage({ title, about, button, path, done }: LinkAction): string {
  const body = html`<main class="single"><p class="status">Pilothouse</p><h1>${title}</h1>
<p id="about">${about}</p>
<p id="outcome" role="status"></p>
<form data-path="${path}" data-done="${done}"><button>${button}</button></form>
<p><a href="/status">Status</a></p>
<noscript><p class="fault">This page needs JavaScript to send the token of the link.</p></noscript>
</main>`;
  return page(title, body, { style: ownStyle, script: linkScript });
}

/**
 * Mounts the pages that open from links in e-mails and need no login. The console contains the pages of the other
 * links.
 */
export function mountLinkPages(fastify: FastifyInstance): void {
  for (const action of actions) {
    const body = linkPage(action);
    fastify.get(linkPath(action.page), (_, reply) => reply.headers(headers).send(body));
  }
}
