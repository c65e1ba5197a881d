import { createTransport } from "nodemailer";
import { Hopeless } from "../kernel/work-kind.ts";
import type { Mail } from "./mail.ts";
import { htmlOf, textOf } from "./mail-text.ts";

/** Mails under way at once. */
export const postWidth = 5;

/** Milliseconds. An attempt takes their sum at most, and a little. */
const timeouts = { connectionTimeout: 10_000, greetingTimeout: 10_000, dnsTimeout: 10_000, socketTimeout: 20_000 };

/** Who sends mails for us, and as whom. */
export interface PostOptions {
  readonly smtpUrl: string;
  readonly mailFrom: string;
  readonly publicUrl: string;
}

/** Hands mails to a server that sends them on. */
export interface Post {
  /** Throws `Hopeless` when the server will have none of it, ever. */
  send(id: string, mail: Mail): Promise<void>;
  close(): void;
}

/** Opens connections when there is something to send. */
export function createPost({ smtpUrl, mailFrom, publicUrl }: PostOptions): Post {
  const transport = createTransport({ url: smtpUrl, pool: true, maxConnections: postWidth, ...timeouts });
  const domain = /@([^>\s]+)/.exec(mailFrom)?.[1] ?? "localhost";
  return {
    async send(id, mail) {
      const { to, subject, unsubscribe } = mail;
      const message = {
        ...{ from: mailFrom, to, subject, text: textOf(mail, publicUrl), html: htmlOf(mail, publicUrl) },
        // The same at every attempt: who gets a mail twice sees it once.
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

/** Codes of nodemailer's errors: the server refused the one who is to get the mail, or the mail itself. */
const refusals = new Set(["EENVELOPE", "EMESSAGE"]);

function rethrow(error: unknown): never {
  if (!(error instanceof Error)) throw error;
  const { code, responseCode, command } = error as { code?: string; responseCode?: number; command?: string };
  const isFinal = refusals.has(code ?? "") && (responseCode ?? 0) >= 500 && command !== "MAIL FROM";
  throw isFinal ? new Hopeless(error.message, { cause: error }) : error;
}
