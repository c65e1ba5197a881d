import { afterAll, beforeAll, expect, test } from "vitest";
import { type App, createApp } from "../../src/app.ts";
import { readConfig } from "../../src/platform/config.ts";
import { makeDataDirectory, silentLog } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { type Mailbox, startMailbox } from "../support/mailbox.ts";

let app: App;
let mailbox: Mailbox;

beforeAll(async () => {
  mailbox = await startMailbox();
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const env = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const config = readConfig({ ...env, DATA_DIR: await makeDataDirectory(), SMTP_URL: mailbox.url });
  app = createApp(config, { log: silentLog, workerProgram: null });
  await app.start();
}, 60_000);
afterAll(async () => {
  await app?.stop();
  await mailbox?.[Symbol.asyncDispose]();
});

test("a mail is sent once its cause is committed, and not when that is undone", async () => {
  const { db, mailer } = app;
  const url = mailer.link("verify-email", "token");
  const mail = { to: "ada@example.com", subject: "Hello", lines: ["One.", "Two."], kind: "security" } as const;
  const undone = db.transaction(async (tx) => {
    await mailer.send(tx, { ...mail, subject: "Undone" });
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  await db.transaction((tx) => mailer.send(tx, { ...mail, button: { label: "Press", url } }));
  const { subject, text, links } = await mailbox.next("ada@example.com");
  expect({ subject, links }).toEqual({ subject: "Hello", links: [url] });
  expect(text).toContain("One.\n\nTwo.");
});
