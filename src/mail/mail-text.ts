import { Html, html } from "../platform/html.ts";
import { type Mail, unlinked } from "./mail.ts";
import { isOptional } from "./preferences.ts";

/** Style sheet of every e-mail. E-mails are readable without the style sheet. */
export const mailStyle = `
:root { color-scheme: light dark; }
body { margin: 0; padding: 2rem 1rem; background: #f7f8fa; color: #14171f;
  font: 16px/1.55 "Inter", ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 32rem; margin: 0 auto; padding: 1.8rem 2rem; background: #ffffff; border: 1px solid #e3e6eb;
  border-radius: 12px; }
.name { margin: 0 0 1.4rem; color: #4d5667; font-size: .9rem; }
h1 { margin: 0 0 1.2rem; font-size: 1.35rem; line-height: 1.3; }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
.act { margin: 1.6rem 0; }
.act a { display: inline-block; padding: .7rem 1.3rem; background: #3b5bdb; color: #ffffff; border-radius: 8px;
  font-weight: 600; text-decoration: none; }
.soft { color: #4d5667; font-size: .875rem; }
.foot a { color: inherit; }
.foot { max-width: 32rem; margin: 1.2rem auto 0; padding: 0 2rem; color: #4d5667; font-size: .8rem; }
@media (prefers-color-scheme: dark) {
  body { background: #0b0d11; color: #eceff4; }
  main { background: #111419; border-color: #222831; }
  .act a { background: #4263eb; }
  .name, .soft, .foot { color: #a9b2c1; }
}
@media (max-width: 30rem) {
  body { padding: 0; }
  main { padding: 1.4rem 1.2rem; border-width: 0 0 1px; border-radius: 0; }
  .foot { padding: 0 1.2rem 1.2rem; }
}
`;

/** Formats the footer: the recipient, the deployment, and how to turn off optional e-mails. */
function footOf({ to, kind }: Mail, publicUrl: string): string {
  const sent = `Sent to ${to} by Pilothouse at ${new URL(publicUrl).host}.`;
  return unlinked(isOptional(kind) ? `${sent} You can turn off these e-mails in the settings of the console.` : sent);
}

export function textOf(mail: Mail, publicUrl: string): string {
  const { lines, button, unsubscribe } = mail;
  const act = button ? [`${button.label}:\n${button.url}`] : [];
  const end = unsubscribe ? [`Unsubscribe:\n${unsubscribe.page}`] : [];
  return `${[...lines, ...act, `-- \n${footOf(mail, publicUrl)}`, ...end].join("\n\n")}\n`;
}

export function htmlOf(mail: Mail, publicUrl: string): string {
  const { subject, lines, button, unsubscribe } = mail;
  const end = unsubscribe && html` <a href="${unsubscribe.page}">Unsubscribe</a>`;
  const act =
    button &&
    html`<p class="act"><a href="${button.url}">${button.label}</a></p>
<p class="soft">If the button does not work, open this address:<br>${button.url}</p>
`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${subject}</title>
<style>${new Html(mailStyle)}</style>
</head>
<body>
<main>
<p class="name">Pilothouse</p>
<h1>${subject}</h1>
${lines.map((line) => html`<p>${line}</p>\n`)}${act}</main>
<p class="foot">${footOf(mail, publicUrl)}${end}</p>
</body>
</html>
`.markup;
}
