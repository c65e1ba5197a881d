import { createRequire } from "node:module";
import { PermanentFailure } from "../kernel/job-kind.ts";
import type { Mail } from "./mail.ts";
import { htmlOf, textOf } from "./mail-text.ts";

/** Maximum number of e-mails sent at once. */
export const smtpWidth = 5;

/** Milliseconds. `socketTimeout`: without any data from the server. */
const timeouts = { connectionTimeout: 10_000, greetingTimeout: 10_000, dnsTimeout: 10_000, socketTimeout: 20_000 };

/** SMTP server and sender. */
export interface SmtpOptions {
  readonly smtpUrl: string;
  readonly mailFrom: string;
  readonly publicUrl: string;
}

/** Sends e-mails through an SMTP server. */
export interface SmtpClient {
  /** Throws `PermanentFailure` if the server rejects the e-mail permanently. */
  send(id: string, mail: Mail): Promise<void>;
  close(): void;
}

/** Loads nodemailer only for SMTP, because loading takes 90 ms of CPU. */
function loadNodemailer(): typeof import("nodemailer") {
  return createRequire(import.meta.url)("nodemailer");
}

/** Creates an SMTP client, which connects on demand. */
export function createSmtpClient({ smtpUrl, mailFrom, publicUrl }: SmtpOptions): SmtpClient {
  const transport = loadNodemailer().createTransport({
    url: smtpUrl,
    pool: true,
    maxConnections: smtpWidth,
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
        // Equal on every attempt, so that mail programs show an e-mail only once if it is delivered twice.
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
  throw isFinal ? new PermanentFailure(error.message, { cause: error }) : error;
}
