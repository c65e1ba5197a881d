import { expect, test } from "vitest";
import { type AuthMails, createAuthMails } from "../../src/auth/auth-mails.ts";
import { factorMail } from "../../src/auth/mfa/mfa-mails.ts";

const ada = { id: "usr_1", email: "ada@example.com", name: "Ada" };
const auth: AuthMails = createAuthMails({ link: (page, token) => `https://example.com/${page}#${token}` });

test.each([
  auth.verification(ada, "t"),
  auth.magicLink(ada, "t"),
  auth.passwordReset(ada, "t"),
  auth.passwordChanged(ada, [], "t"),
  auth.newDevice(ada, { address: "192.0.2.1", network: "192.0.2.0/24", family: "Firefox" } as never),
  auth.emailChange(ada, "t"),
  auth.emailTaken(ada),
  auth.emailChanged(ada, "new@example.com", "t"),
  auth.emailRestored(ada, "t"),
  ...(["enrolled", "removing", "removed", "recovered"] as const).map((change) => factorMail(change, ada)),
])("the e-mail $subject begins with a greeting and a capitalized sentence", ({ lines: [greeting, first = ""] }) => {
  expect(greeting).toBe("Hello Ada,");
  expect(first).toMatch(/^[A-Z].*\.$/);
});
