import { once } from "node:events";
import { type AddressObject, type ParsedMail, simpleParser } from "mailparser";
import { SMTPServer } from "smtp-server";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { freePorts } from "./free-port.ts";

const timeout = 20_000;

export interface ReceivedMail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** Distinct URLs of the e-mail's links. */
  readonly links: readonly string[];
  /** The complete parsed e-mail. */
  readonly parsed: ParsedMail;
}

/** SMTP server that stores received e-mails. */
export interface Mailbox extends AsyncDisposable {
  /** Value of SMTP_URL. */
  readonly url: string;
  /** Removes and returns the oldest e-mail to an address, when it arrives. */
  next(address: string): Promise<ReceivedMail>;
  /** Remaining e-mails to an address, oldest first. */
  waiting(address: string): readonly ReceivedMail[];
  /** Refuses the next e-mails to an address with these SMTP codes. */
  answer(address: string, codes: readonly number[]): void;
  /** Number of refused e-mails to an address. */
  refusals(address: string): number;
}

export async function startMailbox(): Promise<Mailbox> {
  const { SMTP } = await freePorts("SMTP");
  const mails: ReceivedMail[] = [];
  const codes = new Map<string, number[]>();
  const refused: string[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onRcptTo({ address }, _, done) {
      const responseCode = codes.get(address)?.shift();
      if (responseCode === undefined) return done();
      refused.push(address);
      done(Object.assign(new Error("not now"), { responseCode }));
    },
    onData(stream, _, done) {
      simpleParser(stream).then((parsed) => {
        mails.push(toReceived(parsed));
        done();
      }, done);
    },
  });
  server.listen(SMTP, "127.0.0.1");
  await once(server.server, "listening");
  const waiting = (address: string) => mails.filter(({ to }) => to === address);
  return {
    url: `smtp://127.0.0.1:${SMTP}`,
    waiting,
    answer: (address, all) => void codes.set(address, [...all]),
    refusals: (address) => refused.filter((each) => each === address).length,
    async next(address) {
      await waitUntil(() => waiting(address).length > 0, { timeout, every: 10 });
      const [mail] = waiting(address);
      if (!mail) throw new Error(`received no mail to ${address}`);
      mails.splice(mails.indexOf(mail), 1);
      return mail;
    },
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function toReceived(parsed: ParsedMail): ReceivedMail {
  const { subject = "", text = "", html = "", to } = parsed;
  const page = html || "";
  const links = `${text}\n${page.replaceAll("&amp;", "&")}`.match(/https?:\/\/[^\s"<>]+/g) ?? [];
  return { to: addressOf(to), subject, text, html: page, links: [...new Set(links)], parsed };
}

function addressOf(to: AddressObject | AddressObject[] | undefined): string {
  const [first] = [to].flat();
  return first?.value[0]?.address ?? "";
}
