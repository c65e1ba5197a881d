import type { FastifyInstance } from "fastify";
import type { LinkPage } from "../../src/mail/mailer.ts";
import { Html, html } from "../../src/platform/html.ts";
import { pageHeadersFor } from "./content-policy.ts";
import { style } from "./style.ts";

/** What a link in a mail leads to. */
interface LinkAction {
  readonly title: string;
  readonly about: string;
  readonly button: string;
  /** Path of the method that takes the token. */
  readonly path: string;
  readonly done: string;
  /** Whether a new password goes with the token. */
  readonly asksPassword?: true;
}

/** The pages whose methods are served. */
const actions: Partial<Readonly<Record<LinkPage, LinkAction>>> = {
  "verify-email": {
    title: "Verify your e-mail address",
    about: "The address to which the mail went becomes yours here. Then you can log in.",
    button: "Verify the address",
    path: "/v1/auth/verify-email",
    done: "The address is verified. You can log in now.",
  },
  "magic-link": {
    title: "Log in",
    about: "The link is good once. It gives you the tokens of a login, to copy into your program.",
    button: "Log in",
    path: "/v1/auth/magic-link/consume",
    done: "You are logged in. These tokens are shown once:",
  },
  "password-reset": {
    title: "Set another password",
    about: "All your logins end, and the new password is good at once.",
    button: "Set the password",
    path: "/v1/auth/password-reset/confirm",
    done: "The new password is set. You can log in with it now.",
    asksPassword: true,
  },
};

const ownStyle = `
.single form { margin: 1.6rem 0; max-width: 24rem; }
.single label { display: block; margin-bottom: .3rem; }
.single input { width: 100%; padding: .6rem .8rem; margin-bottom: 1rem; font: inherit; color: inherit;
  background: var(--paper); border: 1px solid var(--soft); border-radius: 8px; }
.single form button { padding: .65rem 1.3rem; font: inherit; font-weight: 600; color: var(--paper);
  background: var(--link); border: none; border-radius: 8px; cursor: pointer; }
.single form button:disabled { opacity: .55; cursor: default; }
.fault { color: var(--delete); }
`;

// The token never leaves the browser but in the body of the one request. It goes from the address, too, so that no history
// has it. A mail program that opens links ahead presses no button, and so uses no token up.
const script = `
const main = document.querySelector("main");
const form = document.querySelector("form");
const button = form.querySelector("button");
const outcome = document.querySelector("#outcome");
let token = location.hash.slice(1);
function take() {
  if (location.hash.length > 1) token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
}
function say(text, isFault) {
  outcome.textContent = text;
  outcome.className = isFault ? "fault" : "";
}
function show(name, value) {
  const heading = document.createElement("h4");
  const pre = document.createElement("pre");
  const code = document.createElement("code");
  heading.textContent = name;
  code.textContent = value;
  pre.append(code);
  const copy = document.createElement("button");
  copy.textContent = "Copy";
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(value);
    copy.textContent = "Copied";
  });
  pre.prepend(copy);
  main.append(heading, pre);
}
async function send() {
  const password = form.querySelector("input")?.value;
  const body = JSON.stringify({ token, ...(password !== undefined && { password }) });
  const answer = await fetch(main.dataset.path, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const text = await answer.text();
  const content = text === "" ? {} : JSON.parse(text);
  if (!answer.ok) {
    const faults = (content.errors ?? []).map(({ field, message }) => field + " " + message);
    throw new Error([content.detail ?? content.title, ...faults].join(" "));
  }
  form.remove();
  say(main.dataset.done, false);
  for (const [name, value] of [["Access token", content.access_token], ["Refresh token", content.refresh_token]])
    if (value) show(name, value);
}
take();
addEventListener("hashchange", take);
if (token === "") say("This link is not complete. Open the one in the mail, or copy all of it.", true);
button.disabled = token === "";
form.addEventListener("submit", (event) => {
  event.preventDefault();
  button.disabled = true;
  say("", false);
  send().catch((error) => {
    say(error.message, true);
    button.disabled = false;
  });
});
`;

const headers = {
  ...pageHeadersFor(style + ownStyle, script, ["connect-src 'self'"]),
  "cache-control": "no-store",
};

function linkPage({ title, about, button, path, done, asksPassword }: LinkAction): string {
  const password = html`<label for="password">New password</label>
<input id="password" type="password" autocomplete="new-password" required>
`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${new Html(style + ownStyle)}</style>
</head>
<body>
<main class="single" data-path="${path}" data-done="${done}"><p class="status">Pilothouse</p><h1>${title}</h1>
<p>${about}</p>
<form>${asksPassword && password}<button>${button}</button></form>
<p id="outcome" role="status"></p>
<noscript><p class="fault">This page needs script: it hands the token of the link on.</p></noscript>
</main>
<script>${new Html(script)}</script>
</body>
</html>
`.markup;
}

/** Mounts the pages that links in mails lead to, those whose methods are served. */
export function mountLinkPages(fastify: FastifyInstance): void {
  for (const [name, action] of Object.entries(actions)) {
    const body = linkPage(action);
    fastify.get(`/auth/${name}`, (_, reply) => reply.headers(headers).send(body));
  }
}
