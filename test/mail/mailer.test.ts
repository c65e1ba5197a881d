import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type App, createApp } from "../../src/app/app.ts";
import type { Mail } from "../../src/mail/mail.ts";
import { readConfig } from "../../src/platform/config.ts";
import { createSharedDatabase, type EmptyDatabase, makeDataDirectory, silentLog } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { type Mailbox, startMailbox } from "../support/mailbox.ts";

let app: App;
let mailbox: Mailbox;
let dataDir: string;
let database: EmptyDatabase | undefined;
let passed = 0;

beforeAll(async () => {
  [mailbox, dataDir, database] = await Promise.all([startMailbox(), makeDataDirectory(), createSharedDatabase()]);
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const env = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const config = readConfig({ ...env, DATA_DIR: dataDir, SMTP_URL: mailbox.url, MAIL_FROM: "Pilot <pilot@a.example>" });
  const clock = { now: () => Date.now() + passed };
  app = createApp(config, { log: silentLog, workerProgram: null, clock, database });
  await app.start();
}, 60_000);
afterAll(async () => {
  await app?.stop();
  await database?.[Symbol.asyncDispose]();
  await mailbox?.[Symbol.asyncDispose]();
  await rm(dataDir, { recursive: true, force: true });
});

const plain = { subject: "Hello", lines: ["One.", "Two."], kind: "security" } as const;

function send(mail: Mail): Promise<void> {
  return app.db.transaction((tx) => app.mailer.send(tx, mail));
}

async function countMails(): Promise<number> {
  return (await app.db.sql.selectFrom("mails").select("id").execute()).length;
}

test("a mail is sent if its transaction commits, and not if it is rolled back", async () => {
  const { db, mailer } = app;
  const to = "ada@example.com";
  const undone = db.transaction(async (tx) => {
    await mailer.send(tx, { ...plain, to, subject: "Undone" });
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  const url = mailer.link("verify-email", "token");
  await send({ ...plain, to, button: { label: "Press", url } });
  const { subject, text, html, links, parsed } = await mailbox.next(to);
  expect({ subject, links, from: parsed.from?.text }).toEqual({
    subject: "Hello",
    links: [url],
    from: '"Pilot" <pilot@a.example>',
  });
  expect(text).toContain("One.\n\nTwo.\n\nPress:\n");
  expect(html).toContain("<p>One.</p>");
  expect(parsed.headers.get("auto-submitted")).toBe("auto-generated");
  // Links are as sensitive as passwords, so sent e-mails are deleted.
  await expect.poll(countMails, { timeout: 10_000 }).toBe(0);
});

test("a user name adds no header, markup or link, and cannot exceed a size limit", async () => {
  const name = "Eve\r\nBcc: all@example.com\u2028<b>https://evil.example/x?y=1 www.evil.example eve@evil.example";
  await send({ ...plain, to: "bob@example.com", subject: `From ${name}`, lines: [name, "x".repeat(100_000)] });
  const { subject, text, html, links, parsed } = await mailbox.next("bob@example.com");
  expect(links).toEqual([]);
  for (const part of [subject, text, html]) expect(part).not.toMatch(/[a-z]@[a-z]|[a-z]\.[a-z]*\.?example|:\/\//);
  expect(html).not.toContain("<b>");
  expect(parsed.headers.has("bcc")).toBe(false);
  expect(text.length).toBeLessThan(10_000);
});

test("a deferred mail is retried within seconds, and then for about 17 hours", () => {
  const [first = 0, ...next] = app.mailer.jobKinds[0]?.schedule ?? [];
  expect(first).toBeLessThanOrEqual(5_000);
  const hours = next.reduce((sum, pause) => sum + pause, first) / 3_600_000;
  expect(Math.floor(hours)).toBe(17);
});

test("a deferred mail is sent again with the same Message-ID, a rejected one is not", async () => {
  const [late, refused] = ["late@example.com", "refused@example.com"];
  mailbox.answer(late, [450, 451]);
  mailbox.answer(refused, [550]);
  await Promise.all([late, refused].map((to) => send({ ...plain, to })));
  // Advances the clock until the condition holds.
  const wait = (isOver: () => boolean) =>
    expect.poll(
      () => {
        passed += 5_000;
        return isOver();
      },
      { timeout: 20_000 },
    );
  await wait(() => mailbox.waiting(late).length > 0).toBe(true);
  expect(mailbox.refusals(late)).toBe(2);
  const { parsed } = await mailbox.next(late);
  expect(parsed.messageId).toMatch(/^<eml_\w+@a\.example>$/);
  await wait(() => mailbox.refusals(refused) > 0).toBe(true);
  passed += 86_400_000;
  await send({ ...plain, to: "ada@example.com" });
  await mailbox.next("ada@example.com");
  expect(mailbox.refusals(refused)).toBe(1);
});
