import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withDatabase } from "../e2e/support/embedded-database.ts";
import { realProxyTests } from "../egress/real-proxies.ts";
import { authenticatorOf } from "../support/authenticator.ts";
import { BareClient, type OwnCdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import type { FixtureSite } from "../support/fixture-site.ts";
import { LiveClient } from "../support/live-client.ts";
import { LlmProvider } from "../support/llm-provider.ts";
import { type Mailbox, startMailbox } from "../support/mailbox.ts";
import { OtlpReceiver } from "../support/otlp-receiver.ts";
import { freshEmail, tokenOfMail } from "../support/people.ts";
import { type Certificate, makeCertificate, type RealProxy, startTinyproxy } from "../support/proxies.ts";
import { type Answer, restClient } from "../support/rest.ts";
import type { Service } from "../support/service.ts";
import { Secrets } from "./canaries/secrets.ts";
import { tracesTo, traceTests } from "./traces.ts";

// Alphanumeric, since a proxy restricts the characters of a password.
const canary = (what: string): string => `canary${what}${randomBytes(8).toString("hex")}`;
const proxyPassword = canary("proxy");
/** Not secret. The test must find this name, as proof that the search covers all tables. */
const accountName = canary("name");

let site: FixtureSite;
let mailbox: Mailbox;
let proxy: RealProxy;
let provider: LlmProvider;
let receiver: OtlpReceiver;
let certificate: Certificate;
let scene: OwnCdpScene;
let service: Service;
const secrets = new Secrets((value) => value.startsWith(site.url("/")));
/** Problems returned to clients. */
const problems: string[] = [];

beforeAll(async () => {
  [provider, receiver, mailbox, proxy] = await Promise.all([
    new LlmProvider().start(),
    new OtlpReceiver().start(),
    startMailbox(),
    startTinyproxy({ login: `ada:${proxyPassword}` }),
  ]);
  certificate = makeCertificate();
  scene = await startCdpScene({
    LOG_LEVEL: "trace",
    SMTP_URL: mailbox.url,
    TRUSTED_PROXIES: "127.0.0.1",
    EGRESS_ALLOW: "127.0.0.1,::1",
    WORKER_SLOTS: "2",
    NODE_EXTRA_CA_CERTS: certificate.cert,
    ...provider.env,
    ...tracesTo(receiver),
  });
  ({ service, site } = scene);
  secrets.add("the developer's key", service.key);
  secrets.add("the password of a proxy", proxyPassword);
}, 120_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  certificate?.remove();
  await receiver?.[Symbol.asyncDispose]();
  await proxy?.stop();
  await provider?.[Symbol.asyncDispose]();
  await mailbox?.[Symbol.asyncDispose]();
});

describe("real proxies", () =>
  realProxyTests(
    () => scene,
    () => certificate,
  ));
// Has long tests, see test/support/long-test.ts.
describe("traces", () => traceTests(() => ({ scene, provider, receiver })));

interface Sending extends RequestInit {
  readonly bearer?: string;
}

/** Sends a request. Registers the secrets of the request and the response. */
async function send(path: string, body?: unknown, { bearer = "", ...init }: Sending = {}): Promise<Answer> {
  if (bearer) secrets.add("a bearer", bearer);
  secrets.harvest(body);
  const isText = typeof body === "string" || body instanceof URLSearchParams;
  const rest = restClient({ url: service.url, key: bearer });
  const answer = await rest(path, isText ? "" : body, { ...init, ...(isText && { body }) });
  if (answer.status >= 400) problems.push(JSON.stringify(answer.body));
  else secrets.harvest(answer.body);
  return answer;
}

async function mailed(email: string): Promise<string> {
  const token = await tokenOfMail(mailbox, email);
  secrets.add("a token of an e-mail", token);
  return token;
}

/** Signs up, verifies the address, and uses each kind of login with valid and invalid credentials. */
async function liveAsPerson(): Promise<{ bearer: string; email: string; password: string }> {
  const [email, password] = [freshEmail(), canary("password")];
  const wrong = canary("wrong");
  await send("/v1/auth/signup", { email, password, name: "Ada", account_name: accountName });
  await send("/v1/auth/login", { email, password });
  await send("/v1/auth/verify-email", { token: await mailed(email) });
  await send("/v1/auth/login", { email, password: wrong });
  const { body: login } = await send("/v1/auth/login", { email, password });
  const { body: refreshed } = await send("/v1/auth/refresh", { refresh_token: login.refresh_token });
  await send("/v1/auth/refresh", { refresh_token: `${refreshed.refresh_token}x` });
  await send("/v1/auth/magic-link/request", { email });
  const link = await mailed(email);
  await send("/v1/auth/magic-link/consume", { token: link });
  await send("/v1/auth/magic-link/consume", { token: link });
  await send("/v1/auth/password-reset/request", { email });
  const next = canary("next");
  await send("/v1/auth/password-reset/confirm", { token: await mailed(email), password: next });
  const { status, body } = await send("/v1/auth/login", { email, password: next });
  expect(status).toBe(200);
  return { bearer: body.access_token, email, password: next };
}

async function useSecondFactor({ bearer, password }: { bearer: string; password: string }): Promise<void> {
  const { body } = await send("/v1/auth/mfa/totp", { password }, { bearer });
  const confirmed = await send(
    "/v1/auth/mfa/totp/confirm",
    { code: authenticatorOf(body.otpauth_url)(Date.now()) },
    { bearer },
  );
  const [recovery] = confirmed.body.recovery_codes;
  await send("/v1/auth/mfa/step-up", { code: "00000-00000" }, { bearer });
  expect((await send("/v1/auth/mfa/step-up", { code: recovery }, { bearer })).status).toBe(200);
}

async function useKeys(bearer: string): Promise<void> {
  const headers = { "idempotency-key": canary("idempotency") };
  const { body: key } = await send("/v1/api-keys", { name: "CI" }, { bearer, headers });
  await send("/v1/api-keys", { name: "CI" }, { bearer, headers });
  const client = { client_id: key.id, client_secret: key.key };
  const form = new URLSearchParams({ grant_type: "client_credentials", ...client });
  const type = { "content-type": "application/x-www-form-urlencoded" };
  expect((await send("/v1/oauth/token", form, { headers: type })).status).toBe(200);
  const basic = Buffer.from(`${key.id}:${canary("client")}`).toString("base64");
  secrets.add("a client's header", basic);
  await send("/v1/oauth/token", "grant_type=client_credentials", {
    headers: { ...type, authorization: `Basic ${basic}` },
  });
  const rotated = await send(`/v1/api-keys/${key.id}/rotate`, {}, { bearer });
  await send("/v1/profiles", undefined, { bearer: `${rotated.body.key}x` });
}

async function useWebhooks(bearer: string): Promise<void> {
  // A webhook URL is not secret, but a CDP URL has the same field name and is.
  const { body } = await restClient({ url: service.url, key: bearer })("/v1/webhooks", { url: "https://a.invalid/" });
  secrets.add("the secret of a webhook", body.secret);
  for (const what of ["rotate-secret", "rotate-secret", "test"])
    expect((await send(`/v1/webhooks/${body.id}/${what}`, {}, { bearer })).status).toBeLessThan(300);
}

async function useTeam(bearer: string): Promise<void> {
  const email = freshEmail();
  await send("/v1/team/invites", { email }, { bearer });
  await send("/v1/team/invites/accept", { token: await mailed(email) }, { bearer });
}

async function useSession(bearer: string): Promise<void> {
  const settings = { server: `http://127.0.0.1:${proxy.port}`, username: "ada" };
  await send("/v1/sessions", { proxy: { ...settings, password: canary("refused") } }, { bearer });
  const { status, body } = await send("/v1/sessions", { proxy: { ...settings, password: proxyPassword } }, { bearer });
  expect(status).toBe(201);
  const path = `/v1/sessions/${body.id}`;
  const typed = canary("typed");
  secrets.add("what was typed", typed);
  await send(`${path}/navigate`, { url: site.url("/form.html") }, { bearer });
  const action = { kind: "type", selector: "#name", text: typed };
  expect((await send(`${path}/interact`, { action }, { bearer })).status).toBe(200);
  await send(`${path}/interact`, { action: { ...action, selector: "#nothing" }, timeout_ms: 100 }, { bearer });
  const cookie = canary("cookie");
  secrets.add("a cookie", cookie);
  await send(`${path}/navigate`, { url: site.url("/plain.html") }, { bearer, headers: { cookie: `id=${cookie}` } });
  const cdp = await send(`${path}/cdp-url`, {}, { bearer });
  const token = new URL(cdp.body.url).pathname.split("/").at(-1) ?? "";
  secrets.add("the token of a CDP address", token);
  await send(`${path}/cdp/${token}/json/version`);
  await send(`${path}/cdp/${token}x/json/version`);
  await useConnect(bearer);
  const content = canary("content");
  secrets.add("what is in a file", content);
  await send(`${path}/files/a.txt`, content, { bearer, method: "PUT", headers: { "content-type": "text/plain" } });
  await watchAndDrive(path, bearer);
  await send(path, undefined, { bearer, method: "DELETE" });
}

/** Connects with a key, a ticket and a proxy's password in the address, and with faulty addresses. */
async function useConnect(bearer: string): Promise<void> {
  const [option, wrong, password] = [canary("option"), canary("wrong-key"), canary("connect-proxy")];
  for (const [what, value] of Object.entries({ option, wrong, password })) secrets.add(`${what} in an address`, value);
  const proxied = `proxy=http://ada:${password}@127.0.0.1:1`;
  const visit = async (path: string, init?: RequestInit): Promise<string> => {
    const response = await fetch(service.url + path, init);
    const text = await response.text();
    if (!response.ok) problems.push(text);
    return text;
  };
  const address = (path: string) => `${service.url.replace("http", "ws")}${path}`;
  const refuse = async (path: string, headers: Record<string, string> = {}): Promise<void> => {
    const problem = await BareClient.connect(address(path), headers).then(() => "", String);
    expect(problem).toMatch(/ 4\d\d /);
    problems.push(problem);
  };
  const version = await visit(`/connect/${bearer}/json/version?${proxied}`);
  const ticket = new URL(JSON.parse(version).webSocketDebuggerUrl);
  secrets.add("a ticket", ticket.pathname.split("/").at(-1) ?? "");
  await visit(`/connect/json/version?token=${bearer}&name=crawler`);
  await visit(`/connect/${bearer}/json/list`);
  const client = await BareClient.connect(address(`/connect/${bearer}?name=crawler`));
  await refuse(`/connect/${bearer}?name=crawler`, { origin: "https://elsewhere.example" });
  await client.send("Browser.close").catch(() => undefined);
  for (const at of [`/connect/${bearer}?`, `/connect?token=${bearer}&`, "/connect?"]) await refuse(`${at}a=${option}`);
  for (const at of [`/connect/${wrong}`, `/connect?token=${wrong}`, ticket.pathname + ticket.search]) await refuse(at);
  await refuse(`/connect/${bearer}`, { "x-playwright-browser": "chromium" });
  const faults = [
    "",
    "/session",
    "/json",
    "/json/version/x",
    "/json/version?a=%zz",
    `/json/version?a=${option}`,
    "%zz",
  ];
  for (const fault of faults) await visit(`/connect/${bearer}${fault}`);
  for (const method of ["POST", "DELETE"]) await visit(`/connect/${bearer}/json/version`, { method });
  await visit(`/connect/${bearer}/json/version`, { headers: { "x-long": "a".repeat(20_000) } });
}

/** Lets an agent type, with a stored LLM key, with one from a header, and with an invalid one. */
async function useAgent(bearer: string): Promise<void> {
  const key = (api_key: string) =>
    send("/v1/account/me/byok-llm-key", { provider: "anthropic", api_key }, { bearer, method: "PUT" });
  await key(canary("wrong-llm-key"));
  expect((await send("/v1/account/me/byok-llm-key/test", {}, { bearer })).body.ok).toBe(false);
  const [variable, seed] = [
    canary("variable"),
    randomBytes(20)
      .toString("hex")
      .replace(/[0189]/g, "a")
      .toUpperCase(),
  ];
  const domains = ["127.0.0.1"];
  const variables = { password: { value: variable, domains }, second: { value: seed, domains } };
  secrets.add("a variable", variable);
  secrets.add("a seed", seed);
  const { body: agent } = await send("/v1/agent-sessions", { variables }, { bearer });
  // A message to an agent is not secret, but typed text has the same field name and is.
  const rest = restClient({ url: service.url, key: bearer });
  const say = async (text: string, headers: Record<string, string> = {}) =>
    (await rest(`/v1/agent-sessions/${agent.id}/message`, { text, wait_ms: 60_000 }, { headers })).body.status;
  expect(await say("Go on.")).toBe("failed");
  const [header, typed] = [`good-${canary("header-llm-key")}`, canary("agent-typed")];
  secrets.add("an LLM key of a header", header);
  secrets.add("what an agent has typed", typed);
  const type = (text: string) => ({ name: "act", input: { actions: [{ kind: "type", text }] } });
  const types = [typed, "{{password}}", "{{second.totp}}"].map(type);
  const focuses = { name: "act", input: { actions: [{ kind: "key", key: "Tab" }] } };
  const goes = { name: "navigate", input: { url: site.url("/./form.html") } };
  provider.script = ({ results }) => (results.length === 0 ? { calls: [goes, focuses, ...types] } : { text: "Done." });
  expect(await say("Fill it in.", { "x-byok-llm-api-key": header })).toBe("done");
  await key(`good-${canary("llm-key")}`);
  expect((await send("/v1/account/me/byok-llm-key/test", {}, { bearer })).body.ok).toBe(true);
  expect(await say("And again.")).toBe("done");
  const told = JSON.stringify(provider.asked.map(({ body }) => body));
  expect(told).toContain("{{password}}{{second.totp}}");
  for (const secret of [variable, seed]) expect(told).not.toContain(secret);
  await send(`/v1/agent-sessions/${agent.id}`, undefined, { bearer, method: "DELETE" });
}

/** Joins by a view link, controls the session, and tries refused requests. */
async function watchAndDrive(path: string, bearer: string): Promise<void> {
  const { body: link } = await send(`${path}/view-links`, { control: true }, { bearer });
  const token = new URL(link.url).hash.slice(1);
  const [viewerKey, pasted] = [canary("viewer-key"), canary("pasted")];
  secrets.add("the token of a view link", token);
  secrets.add("the key of a viewer", viewerKey);
  secrets.add("what was pasted", pasted);
  using viewer = await LiveClient.join(service.url, token, { viewer_key: viewerKey });
  viewer.send({ take_control: {} });
  await viewer.receive(({ state }) => state?.control.state === "human_control");
  viewer.send({ input: { events: [{ kind: "paste", text: pasted }] } });
  await viewer.receive(({ input }) => input?.accepted === 1);
  viewer.send({ command: { kind: "navigate", url: `ftp://${token}.invalid/` } });
  await viewer.receive(({ refused }) => refused);
  await expect(LiveClient.join(service.url, `${token}x`)).rejects.toThrow("401");
  await send(`/live?${token}`);
  viewer.send({ hand_back: {} });
  await viewer.receive(({ state }) => state?.control.state === "api");
}

/** Sends secrets in places where they do not belong. */
async function misplace(bearer: string): Promise<void> {
  for (const what of ["query", "body", "field", "type", "header", "protocol", "path"])
    secrets.add(`a secret in the ${what}`, misplaced(what));
  await send(`/v1/profiles?password=${misplaced("query")}`, undefined, { bearer });
  await send("/v1/auth/login", `{"password": "${misplaced("body")}"`, { method: "POST" });
  await send("/v1/auth/login", { email: { password: misplaced("field") }, password: [misplaced("type")] });
  const headers = {
    "x-byok-llm-api-key": misplaced("header"),
    "proxy-authorization": `Basic ${misplaced("header")}`,
    "sec-websocket-protocol": `bearer.${misplaced("protocol")}`,
  };
  await send("/v1/profiles", undefined, { bearer, headers });
  await send(`/v1/sessions/ses_none/cdp/${misplaced("path")}/json/version`);
}
const places = new Map<string, string>();
function misplaced(what: string): string {
  const value = places.get(what) ?? canary(what);
  places.set(what, value);
  return value;
}

/** Returns all PostgreSQL tables as text, with bytes in hex. */
async function dump(): Promise<Record<string, string>> {
  return withDatabase(service.databaseUrl, async (query) => {
    const tables = await query<{ name: string }>("select tablename as name from pg_tables where schemaname = 'public'");
    const rows = await Promise.all(
      tables.map(async ({ name }) => {
        const [row] = await query<{ all: string }>(
          `select coalesce(string_agg(t::text, E'\\n'), '') as all from "${name}" t`,
        );
        return [`table ${name}`, row?.all ?? ""] as const;
      }),
    );
    return Object.fromEntries(rows);
  });
}

test("no secret is found in logs, metrics, problems, events or the audit log, nor readable in the database", async () => {
  const person = await liveAsPerson();
  await useSecondFactor(person);
  await useKeys(person.bearer);
  await useWebhooks(person.bearer);
  await useTeam(person.bearer);
  await useSession(service.key);
  await useAgent(service.key);
  await misplace(service.key);
  const metrics = await (await fetch(`${service.internalUrl}/metrics`)).text();
  const places = { log: service.output(), metrics, problems: problems.join("\n"), ...(await dump()) };

  expect(problems.length).toBeGreaterThan(12);
  expect(metrics).toContain("pilothouse_");
  expect(places.log.split("\n").length).toBeGreaterThan(20);
  // The account name, which is not secret, must be found.
  const named = Object.entries(places).filter(([, text]) => text.includes(accountName));
  expect(named.map(([place]) => place)).toContain("table accounts");
  expect(Object.keys(places)).toEqual(expect.arrayContaining(["table events", "table audit_entries", "table mails"]));
  expect(secrets.count).toBeGreaterThan(30);
  expect(secrets.foundIn(places)).toEqual([]);
}, 120_000);
