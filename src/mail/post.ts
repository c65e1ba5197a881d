import { createRequire } from "node:module";
import { Hopeless } from "../kernel/job-kind.ts";
import type { Mail } from "./mail.ts";
import { htmlOf, textOf } from "./mail-text.ts";

/** Maximum number of mails sent at once. */
export const postWidth = 5;

/** Milliseconds. An attempt takes little more than the sum of these timeouts. */
const timeouts = { connectionTimeout: 10_000, greetingTimeout: 10_000, dnsTimeout: 10_000, socketTimeout: 20_000 };

/** SMTP server and sender. */
export interface PostOptions {
  readonly smtpUrl: string;
  readonly mailFrom: string;
  readonly publicUrl: string;
}

/** Sends mails through an SMTP server. */
export interface Post {
  /** Throws `Hopeless` if the server rejects the mail permanently. */
  send(id: string, mail: Mail): Promise<void>;
  close(): void;
}

/** Loads the package. Without SMTP, a gateway starts with 90 ms less CPU. */
function loadNodemailer(): typeof import("nodemailer") {
  return createRequire(import.meta.url)("nodemailer");
}

/** Creates an SMTP client, which connects on demand. */
export function createPost({ smtpUrl, mailFrom, publicUrl }: PostOptions): Post {
  const transport = loadNodemailer().createTransport({
    url: smtpUrl,
    pool: true,
    maxConnections: postWidth,
    ...timeouts,
  });
  const domain = /@([^>\s]+)/.exec(mailFrom)?.[1] ?? "localhost";
  return {
    async send(id, mail) {
      const { to, subject, unsubscribe } = mail;
      const message = {
        from: mailFrom,
        to,
        subject,
        text: textOf(mail, publicUrl),
        html: htmlOf(mail, publicUrl),
        // Equal on every attempt, so that mail programs show a mail only once if it is delivered twice.
        messageId: `<${id}@${domain}>`,
        headers: {
          "Auto-Submitted": "auto-generated",
          ...(unsubscribe && {
            "List-Unsubscribe": `<${unsubscribe.oneClick}>`,
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
          }),
        },
        disableFileAccess: true,
        disableUrlAccess: true,
      };
      await transport.sendMail(message).catch(rethrow);
    },
    close: () => transport.close(),
  };
}

/** Error codes of nodemailer for a rejected recipient or a rejected message. */
const refusals = new Set(["EENVELOPE", "EMESSAGE"]);

function rethrow(error: unknown): never {
  if (!(error instanceof Error)) throw error;
  const { code, responseCode, command } = error as { code?: string; responseCode?: number; command?: string };
  const isFinal = refusals.has(code ?? "") && (responseCode ?? 0) >= 500 && command !== "MAIL FROM";
  throw isFinal ? new Hopeless(error.message, { cause: error }) : error;
}
