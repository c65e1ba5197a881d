import type { FastifyInstance } from "fastify";
import { type LinkPage, linkPath } from "../../src/mail/mailer.ts";
import { type Html, html } from "../../src/platform/html.ts";
import { pageHeadersFor } from "./content-policy.ts";
import { linkScript } from "./link-script.ts";
import { page } from "./shell.ts";
import { style } from "./style.ts";

/** An input field of a form. */
interface LinkField {
  /** Member of the request. */
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly type: "text" | "email" | "password";
  readonly autocomplete: string;
  /** Hidden until the method reports the member as missing. */
  readonly isOptional?: true;
}

/** A form, and the method that takes its values with the token. */
interface LinkForm {
  /** Heading, if the page has several forms. */
  readonly heading?: string;
  readonly fields?: readonly LinkField[];
  readonly button: string;
  /** Path of the method. */
  readonly path: string;
  /** Verb, if the method takes the token in the query. */
  readonly verb?: "GET";
  /** Member of the request for the token. */
  readonly tokenName?: "token" | "invite_token";
  readonly done: string;
}

/** Page of a link in a mail. */
interface LinkAction {
  readonly title: string;
  readonly about: string;
  readonly forms: readonly LinkForm[];
}

const email: LinkField = { name: "email", label: "E-mail address", type: "email", autocomplete: "username" };
const name: LinkField = { name: "name", label: "Your name", type: "text", autocomplete: "name" };
const password: LinkField = { name: "password", label: "Password", type: "password", autocomplete: "current-password" };
const newPassword: LinkField = {
  ...password,
  label: "New password",
  hint: "10 characters or more",
  autocomplete: "new-password",
};

const actions: Readonly<Record<LinkPage, LinkAction>> = {
  "verify-email": {
    title: "Verify your e-mail address",
    about: "This confirms that the address is yours. Then you can log in.",
    forms: [
      {
        fields: [{ ...newPassword, isOptional: true }],
        button: "Verify the address",
        path: "/v1/auth/verify-email",
        done: "The address is verified. You can log in now.",
      },
    ],
  },
  "magic-link": {
    title: "Log in",
    about: "The link works once. It shows the tokens of a login, to copy into your program.",
    forms: [
      {
        button: "Log in",
        path: "/v1/auth/magic-link/consume",
        done: "You are logged in. These tokens are shown once:",
      },
    ],
  },
  "password-reset": {
    title: "Set a new password",
    about: "All your logins end. The new password works immediately.",
    forms: [
      {
        fields: [newPassword],
        button: "Set the password",
        path: "/v1/auth/password-reset/confirm",
        done: "The new password is set. You can log in with it now.",
      },
    ],
  },
  invite: {
    title: "Join a team",
    about: "The invite is for the address that received the mail. It works once.",
    forms: [
      {
        heading: "You are new here",
        fields: [name, email, newPassword],
        button: "Sign up and join",
        path: "/v1/auth/signup",
        tokenName: "invite_token",
        done: "One more step: we have sent you a mail with a link to verify your address. The link adds you to the team.",
      },
      {
        heading: "You can log in already",
        fields: [email, password],
        button: "Log in and join",
        path: "/v1/auth/login",
        tokenName: "invite_token",
        done: "You have joined the team and are logged in to its account. These tokens are shown once:",
      },
    ],
  },
  "email-change": {
    title: "Confirm your new e-mail address",
    about: "You will log in with the address that received the mail. Your logins on other devices end.",
    forms: [
      {
        button: "Confirm the address",
        path: "/v1/auth/email-change/confirm",
        done: "The address is changed. Log in with the new address.",
      },
    ],
  },
  "undo-email-change": {
    title: "Undo the change of your address",
    about: "The address that received the mail becomes yours again. All logins end, and the password is removed.",
    forms: [
      {
        button: "Undo the change",
        path: "/v1/auth/email-change/undo",
        done: "The address is yours again. We have sent it a mail with a link to set a new password.",
      },
    ],
  },
  "account-restore": {
    title: "Restore the account",
    about: "Its keys and logins work again. Sessions and invites that have ended stay ended.",
    forms: [
      {
        button: "Restore the account",
        path: "/v1/auth/account/restore",
        done: "The account is restored. Its members are notified by e-mail.",
      },
    ],
  },
  keys: {
    title: "Revoke your API keys",
    about: "All keys that you created are revoked at once, in every account. Programs that use them stop working.",
    forms: [
      {
        button: "Revoke my keys",
        path: "/v1/auth/keys/revoke",
        done: "Your keys are revoked. Create new keys for the programs that need them.",
      },
    ],
  },
  "status/confirm": {
    title: "Subscribe to status updates",
    about: "You receive an e-mail when an incident opens, changes or ends. Each e-mail has a link to unsubscribe.",
    forms: [
      {
        button: "Subscribe",
        path: "/v1/status/subscribe/confirm",
        verb: "GET",
        done: "You are subscribed. You receive an e-mail for each incident from now on.",
      },
    ],
  },
  "status/unsubscribe": {
    title: "Unsubscribe from status updates",
    about: "The address that received the e-mail gets no more e-mails about incidents.",
    forms: [
      {
        button: "Unsubscribe",
        path: "/v1/status/subscribe/unsubscribe",
        verb: "GET",
        done: "You are unsubscribed. You receive no more e-mails about incidents.",
      },
    ],
  },
};

const ownStyle = `
.single form { margin: 1.6rem 0; max-width: 24rem; }
.single h3 { margin-top: 2.2rem; }
.single h3 + form { margin-top: .8rem; }
.single label { display: block; margin-bottom: .3rem; }
.single input { width: 100%; padding: .6rem .8rem; margin-bottom: 1rem; font: inherit; color: inherit;
  background: var(--paper); border: 1px solid var(--soft); border-radius: 8px; }
.single form button { padding: .65rem 1.3rem; font: inherit; font-weight: 600; color: var(--paper);
  background: var(--link); border: none; border-radius: 8px; cursor: pointer; }
.single form button:disabled { opacity: .55; cursor: default; }
.single :is(input, button):focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.single > p:last-of-type { margin-top: 1.6rem; }
.fault { color: var(--delete); }
`;

const headers = {
  ...pageHeadersFor(style + ownStyle, linkScript, { connect: "'self'" }),
  "cache-control": "no-store",
};

function formOf(form: LinkForm, index: number): Html {
  const { heading, fields = [], button, path, verb = "POST", tokenName = "token", done } = form;
  const inputs = fields.map(({ name, label, hint, type, autocomplete, isOptional }) => {
    const id = `${name}-${index}`;
    return html`<div${isOptional && html` hidden`}><label for="${id}">${label}${hint && html` <span class="rule">${hint}</span>`}</label>
<input id="${id}" name="${name}" type="${type}" autocomplete="${autocomplete}" required${isOptional && html` disabled`}></div>
`;
  });
  return html`${heading && html`<h3>${heading}</h3>\n`}<form data-path="${path}" data-verb="${verb}" data-token-name="${tokenName}" data-done="${done}">
${inputs}<button>${button}</button>
</form>
`;
}

function linkPage({ title, about, forms }: LinkAction): string {
  const body = html`<main class="single"><p class="status">Pilothouse</p><h1>${title}</h1>
<p id="about">${about}</p>
<p id="outcome" role="status"></p>
<div id="forms">${forms.map(formOf)}</div>
<p><a href="/docs">API reference</a></p>
<noscript><p class="fault">This page needs JavaScript to send the token of the link.</p></noscript>
</main>`;
  return page(title, body, { style: ownStyle, script: linkScript });
}

/** Mounts the pages of links in mails. */
export function mountLinkPages(fastify: FastifyInstance): void {
  for (const [name, action] of Object.entries(actions)) {
    const body = linkPage(action);
    // The keys of the record are the page names, which `Object.entries` widens to strings.
    fastify.get(linkPath(name as LinkPage), (_, reply) => reply.headers(headers).send(body));
  }
}
