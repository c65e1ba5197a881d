import type { Browser, Page } from "playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
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

/** Opens the next link of a kind from the mails to an address. */
async function openLink(name: string, email: string): Promise<{ page: Page; faults: string[] }> {
  const isWanted = (link: string) => link.includes(`/auth/${name}#`);
  let link: string | undefined;
  // Skips other mails, such as those about a login from a new device.
  while (link === undefined) link = (await gateway.mailbox.next(email)).links.find(isWanted);
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(link);
  return { page, faults };
}

const outcome = (page: Page) => page.locator("#outcome");

test("a new user can verify by a button, log in by a link, and reset the password by another", async () => {
  const email = freshEmail();
  await rest("/v1/auth/signup", { email, password: goodPassword });
  const verifying = await openLink("verify-email", email);
  expect(verifying.page.url()).not.toContain("#");
  // Opening the link does not use it, since mail programs prefetch links.
  expect(await rest("/v1/auth/login", { email, password: goodPassword })).toMatchObject({ status: 401 });
  await verifying.page.getByRole("button", { name: "Verify the address" }).click();
  await outcome(verifying.page).getByText("The address is verified").waitFor();
  expect(await rest("/v1/auth/login", { email, password: goodPassword })).toMatchObject({ status: 200 });

  await rest("/v1/auth/magic-link/request", { email });
  const loggingIn = await openLink("magic-link", email);
  await loggingIn.page.getByRole("button", { name: "Log in" }).click();
  await outcome(loggingIn.page).getByText("You are logged in").waitFor();
  const [access = "", refresh = ""] = await loggingIn.page.locator("pre code").allTextContents();
  expect(await restClient({ url: gateway.url, key: access })("/v1/auth/logout", {})).toMatchObject({ status: 204 });
  expect(refresh).not.toBe("");

  await rest("/v1/auth/password-reset/request", { email });
  const resetting = await openLink("password-reset", email);
  await resetting.page.getByLabel("New password").fill("short");
  await resetting.page.getByRole("button", { name: "Set the password" }).click();
  await outcome(resetting.page).getByText("New password must have 10").waitFor();
  const password = "another long and uncommon phrase";
  await resetting.page.getByLabel("New password").fill(password);
  await resetting.page.getByRole("button", { name: "Set the password" }).click();
  await outcome(resetting.page).getByText("The new password is set").waitFor();
  const { body: login } = await rest("/v1/auth/login", { email, password });
  const asPerson = restClient({ url: gateway.url, key: login.access_token });
  const { key } = (await asPerson("/v1/api-keys", { name: "nightly checks" })).body;

  const next = "a third phrase, as long as the others";
  expect(await asPerson("/v1/auth/password/change", { current_password: password, password: next })).toMatchObject({
    status: 204,
  });
  const revoking = await openLink("keys", email);
  await revoking.page.getByRole("button", { name: "Revoke my keys" }).click();
  await outcome(revoking.page).getByText("Your keys are revoked").waitFor();
  expect(await restClient({ url: gateway.url, key })("/v1/sessions")).toMatchObject({ status: 401 });
  expect([...verifying.faults, ...loggingIn.faults, ...revoking.faults]).toEqual([]);
}, 120_000);

test("the page asks for a password if the address was signed up more than once", async () => {
  const email = freshEmail();
  for (const password of ["the phrase of a stranger", "the phrase of the owner"])
    await rest("/v1/auth/signup", { email, password });
  await openLink("verify-email", email);
  const { page } = await openLink("verify-email", email);
  expect(await page.getByLabel("New password").isVisible()).toBe(false);
  await page.getByRole("button", { name: "Verify the address" }).click();
  await outcome(page).getByText("New password is needed").waitFor();
  await page.getByLabel("New password").fill("the phrase of the owner");
  await page.getByRole("button", { name: "Verify the address" }).click();
  await outcome(page).getByText("The address is verified").waitFor();
  expect(await rest("/v1/auth/login", { email, password: "the phrase of the owner" })).toMatchObject({ status: 200 });
}, 120_000);

test("an invited person can join on the page by signing up or logging in", async () => {
  const developer = restClient({ url: gateway.url, key: gateway.app.developerKey ?? "" });
  const grace = freshEmail();
  await developer("/v1/team/invites", { email: grace });
  const { page, faults } = await openLink("invite", grace);
  const signingUp = page.locator("form").first();
  await signingUp.getByLabel("Your name").fill("Grace");
  await signingUp.getByLabel("E-mail address").fill(grace);
  await signingUp.getByLabel("New password").fill(goodPassword);
  await signingUp.getByRole("button", { name: "Sign up and join" }).click();
  await outcome(page).getByText("One more step").waitFor();
  expect(await page.locator("form").count()).toBe(0);
  const verifying = await openLink("verify-email", grace);
  await verifying.page.getByRole("button", { name: "Verify the address" }).click();
  await outcome(verifying.page).getByText("The address is verified").waitFor();

  const ada = await gateway.signUp();
  await developer("/v1/team/invites", { email: ada.email });
  const { page: joining } = await openLink("invite", ada.email);
  const loggingIn = joining.locator("form").last();
  await loggingIn.getByLabel("E-mail address").fill(ada.email);
  await loggingIn.getByLabel("Password").fill("not the right password");
  await loggingIn.getByRole("button", { name: "Log in and join" }).click();
  await joining.locator("#outcome.fault").waitFor();
  await loggingIn.getByLabel("Password").fill(ada.password);
  await loggingIn.getByRole("button", { name: "Log in and join" }).click();
  await outcome(joining).getByText("You have joined the team").waitFor();
  const [access = ""] = await joining.locator("pre code").allTextContents();
  const { body: members } = await restClient({ url: gateway.url, key: access })("/v1/team/members");
  expect(members.data.map(({ email }: Record<string, string>) => email)).toEqual([ada.email, grace]);
  expect(faults).toEqual([]);
}, 120_000);

test("a change of address is confirmed at the new address and can be undone at the old one", async () => {
  const { email: old, password, rest: asPerson } = await gateway.signUp();
  const email = freshEmail();
  expect(await asPerson("/v1/auth/email-change/request", { email, password })).toMatchObject({ status: 202 });
  const confirming = await openLink("email-change", email);
  await confirming.page.getByRole("button", { name: "Confirm the address" }).click();
  await outcome(confirming.page).getByText("The address is changed").waitFor();
  expect(await rest("/v1/auth/login", { email, password })).toMatchObject({ status: 200 });
  const undoing = await openLink("undo-email-change", old);
  await undoing.page.getByRole("button", { name: "Undo the change" }).click();
  await outcome(undoing.page).getByText("The address is yours again").waitFor();
  await openLink("password-reset", old);
  expect([...confirming.faults, ...undoing.faults]).toEqual([]);
}, 120_000);

test("an invalid link and an incomplete link are reported as such", async () => {
  const page = await browser.newPage();
  await page.goto(`${gateway.url}/auth/magic-link#${"x".repeat(40)}`);
  await page.getByRole("button").click();
  await outcome(page).getByText("The token is malformed, already used or expired").waitFor();
  await page.goto(`${gateway.url}/auth/verify-email`);
  await outcome(page).getByText("This link is not complete").waitFor();
  expect(await page.getByRole("button").isDisabled()).toBe(true);
}, 60_000);
