import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { longTest } from "../support/long-test.ts";
import { freshEmail, goodPassword } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { type Rest, restClient } from "../support/rest.ts";

let gateway: PeopleGateway;
let browser: Browser;
let rest: Rest;

beforeAll(async () => {
  gateway = await startPeopleGateway();
  rest = restClient({ url: gateway.url, key: "" });
  browser = await launchPlainBrowser();
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await gateway?.[Symbol.asyncDispose]();
});

/** Returns the next link of a kind from the e-mails to an address. */
async function nextLink(name: string, email: string): Promise<string> {
  const isWanted = (link: string) => link.includes(`/auth/${name}#`);
  for (;;) {
    // Skips other e-mails, such as those about a login from a new device.
    const link = (await gateway.mailbox.next(email)).links.find(isWanted);
    if (link !== undefined) return link;
  }
}

/** Opens the next link of a kind from the e-mails to an address. */
async function openLink(name: string, email: string): Promise<{ page: Page; faults: string[] }> {
  const link = await nextLink(name, email);
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(link);
  return { page, faults };
}

/** Pages of the navigation. */
const slugs = [
  "",
  "sessions",
  "agents",
  "recipes",
  "profiles",
  "api-keys",
  "webhooks",
  "usage",
  "team",
  "audit-log",
  "billing",
  "settings",
];

const says = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

test("a new user can verify by a button, log in by a link, and reset the password by another", async () => {
  const email = freshEmail();
  await rest("/v1/auth/signup", { email, password: goodPassword });
  const verifying = await openLink("verify-email", email);
  await verifying.page.getByRole("button", { name: "Verify the address" }).waitFor();
  expect(verifying.page.url()).not.toContain("#");
  // Opening the link does not use it, since mail programs prefetch links.
  expect(await rest("/v1/auth/login", { email, password: goodPassword })).toMatchObject({ status: 401 });
  await press(verifying.page, "Verify the address");
  await says(verifying.page, "The address is verified");
  expect(await rest("/v1/auth/login", { email, password: goodPassword })).toMatchObject({ status: 200 });

  await rest("/v1/auth/magic-link/request", { email });
  const loggingIn = await openLink("magic-link", email);
  await press(loggingIn.page, "Log in");
  await says(loggingIn.page, "Running now");

  await rest("/v1/auth/password-reset/request", { email });
  const resetting = await openLink("password-reset", email);
  await resetting.page.getByLabel("New password").fill("password12");
  await press(resetting.page, "Set the password");
  await resetting.page.getByRole("alert").waitFor();
  const password = "another long and uncommon phrase";
  await resetting.page.getByLabel("New password").fill(password);
  await press(resetting.page, "Set the password");
  await says(resetting.page, "The new password is set");
  const { body: login } = await rest("/v1/auth/login", { email, password });
  const asPerson = restClient({ url: gateway.url, key: login.access_token });
  const { key } = (await asPerson("/v1/api-keys", { name: "nightly checks" })).body;

  const next = "a third phrase, as long as the others";
  expect(await asPerson("/v1/auth/password/change", { current_password: password, password: next })).toMatchObject({
    status: 204,
  });
  const revoking = await openLink("keys", email);
  await press(revoking.page, "Revoke my keys");
  await says(revoking.page, "Your keys are revoked");
  expect(await restClient({ url: gateway.url, key })("/v1/sessions")).toMatchObject({ status: 401 });
  expect([...verifying.faults, ...loggingIn.faults, ...revoking.faults]).toEqual([]);
}, 120_000);

longTest(
  "a user of the plan Free can open 15 pages in a row",
  async () => {
    const email = freshEmail();
    await rest("/v1/auth/signup", { email, password: goodPassword });
    const { page } = await openLink("verify-email", email);
    await press(page, "Verify the address");
    await says(page, "The address is verified");
    await page.goto(`${gateway.url}/console/login`);
    await page.getByLabel("E-mail address").fill(email);
    await page.getByLabel("Password").fill(goodPassword);
    await press(page, "Log in");
    await says(page, "Running now");
    const statuses: number[] = [];
    page.on("response", (response) => statuses.push(response.status()));
    for (const slug of [...slugs, ...slugs.slice(0, 3)]) {
      await page.goto(`${gateway.url}/console/${slug}`);
      await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
      await page.getByText("Loading", { exact: true }).first().waitFor({ state: "detached" });
    }
    expect(statuses.filter((status) => status === 429)).toEqual([]);
    await page.goto(`${gateway.url}/console/billing`);
    await page.getByRole("main").getByText("Current plan: Free").waitFor();
  },
  120_000,
);

test("the page asks for a password if the address was signed up more than once", async () => {
  const email = freshEmail();
  for (const password of ["the phrase of a stranger", "the phrase of the owner"])
    await rest("/v1/auth/signup", { email, password });
  await nextLink("verify-email", email);
  const { page } = await openLink("verify-email", email);
  expect(await page.getByLabel("New password").isVisible()).toBe(false);
  await press(page, "Verify the address");
  await says(page, /several sign-ups used this address/);
  await page.getByLabel("New password").fill("the phrase of the owner");
  await press(page, "Verify the address");
  await says(page, "The address is verified");
  expect(await rest("/v1/auth/login", { email, password: "the phrase of the owner" })).toMatchObject({ status: 200 });
}, 120_000);

test("a person with a login can join a team on the page", async () => {
  const developer = restClient({ url: gateway.url, key: gateway.app.developerKey ?? "" });
  const ada = await gateway.signUp();
  await developer("/v1/team/invites", { email: ada.email });
  const { page } = await openLink("invite", ada.email);
  await press(page, "Already have a login? Join with it");
  await page.getByLabel("E-mail address").fill(ada.email);
  await page.getByLabel("Password").fill("not the right password");
  await press(page, "Log in and join");
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Password").fill(ada.password);
  await press(page, "Log in and join");
  await says(page, "Running now");
  const { body: members } = await developer("/v1/team/members");
  expect(members.data.map(({ email }: Record<string, string>) => email)).toEqual([ada.email]);
}, 120_000);

longTest(
  "a change of address is confirmed at the new address and can be undone at the old one",
  async () => {
    const { email: old, password, rest: asPerson } = await gateway.signUp();
    const email = freshEmail();
    expect(await asPerson("/v1/auth/email-change/request", { email, password })).toMatchObject({ status: 202 });
    const confirming = await openLink("email-change", email);
    await press(confirming.page, "Confirm the address");
    await says(confirming.page, "The address is changed");
    expect(await rest("/v1/auth/login", { email, password })).toMatchObject({ status: 200 });
    const undoing = await openLink("undo-email-change", old);
    await press(undoing.page, "Undo the change");
    await says(undoing.page, /The address is yours again/);
    await nextLink("password-reset", old);
    expect([...confirming.faults, ...undoing.faults]).toEqual([]);
  },
  120_000,
);

test("an invalid link and an incomplete link are reported as such", async () => {
  const page = await browser.newPage();
  await page.goto(`${gateway.url}/auth/magic-link#${"x".repeat(40)}`);
  await press(page, "Log in");
  await says(page, /The token is malformed, already used or expired/);
  await page.goto(`${gateway.url}/auth/verify-email`);
  await says(page, "This link is not complete");
}, 60_000);
