import { expect, test } from "vitest";
import { readConfig } from "../../src/platform/config.ts";
import { readerOf } from "../../src/platform/environment.ts";
import { readIsolation } from "../../src/platform/isolation.ts";

const user = { uid: 1000, home: "/home/ada" };
const secrets = { SECRETS_KEYS: `one:${"A".repeat(43)}=`, WORKER_TOKEN: "0123456789abcdef" };
const external = { DATABASE_URL: "postgres://db/x", SIGNUP: "closed", ...secrets };

test("config without DATABASE_URL selects embedded mode on loopback", () => {
  expect(readConfig({}, user)).toMatchObject({
    embedded: true,
    host: "127.0.0.1",
    port: 8080,
    grpcPort: 8081,
    internalPort: 8082,
    fleetPort: 8083,
    publicUrl: "http://localhost:8080",
    errorsBase: "http://localhost:8080/errors",
    dataDir: "/home/ada/.local/share/pilothouse",
    role: "all",
    queueMs: 10_000,
    tls: undefined,
  });
  expect(readConfig({}, { uid: 0, home: "/root" }).dataDir).toBe("/var/lib/pilothouse");
});

test("config lets people on a terminal read the greeting first", () => {
  const onTerminal = { ...user, hasTerminal: true };
  expect(readConfig({}, onTerminal).logLevel).toBe("warn");
  expect(readConfig({ LOG_LEVEL: "debug" }, onTerminal).logLevel).toBe("debug");
  expect(readConfig({}, user).logLevel).toBe("info");
  expect(readConfig(external, onTerminal).logLevel).toBe("info");
});

test("config with DATABASE_URL listens on all addresses", () => {
  expect(readConfig(external, user)).toMatchObject({ embedded: false, host: "0.0.0.0" });
});

test("config with DATABASE_URL and REDIS_URL shares state with other gateways and divides jobs among them", () => {
  const scaled = { ...external, REDIS_URL: "rediss://cache:6380/1" };
  expect(readConfig(scaled, user)).toMatchObject({ redisUrl: "rediss://cache:6380/1", role: "all" });
  expect(readConfig({ ...scaled, ROLE: "api" }, user)).toMatchObject({ role: "api" });
  const sentinels = { ...external, REDIS_URL: "rediss+sentinel://:p%40ss@one:26379,two/main/1?sentinel_password=p" };
  expect(readConfig(sentinels, user)).toMatchObject({ redisUrl: sentinels.REDIS_URL, role: "all" });
  expect(() => readConfig({ ...external, ROLE: "api" }, user)).toThrow(/ROLE accepts `api` only with REDIS_URL/);
});

test("config treats empty variables as absent and removes trailing slashes from addresses", () => {
  const config = readConfig(
    { PORT: "", PUBLIC_URL: "https://x.example/", ERRORS_BASE: "https://e.example/err//" },
    user,
  );
  expect(config).toMatchObject({ port: 8080, publicUrl: "https://x.example", errorsBase: "https://e.example/err" });
});

test.each([
  ["http://localhost:8080", "example.com:443"],
  ["https://10.0.0.1:8443", "example.com:443"],
  ["https://[::1]:8443", "example.com:443"],
  ["https://gateway", "example.com:443"],
  ["https://pilothouse.internal", "example.com:443"],
  ["https://pilothouse.example.com", "pilothouse.example.com:443"],
  ["http://pilothouse.example.com", "pilothouse.example.com:80"],
  ["https://pilothouse.example.com:8443", "pilothouse.example.com:8443"],
])("config for PUBLIC_URL %s sets the proxy check URL %s", (publicUrl, proxyCheck) => {
  expect(readConfig({ PUBLIC_URL: publicUrl }, user)).toMatchObject({ proxyCheck });
  expect(readConfig({ PUBLIC_URL: publicUrl, PROXY_CHECK: "a.example:1" }, user).proxyCheck).toBe("a.example:1");
});

const wrong: [variable: string, value: string, accepts: RegExp][] = [
  ["PORT", "eighty", /whole number from 0 to 65535/],
  ["GRPC_PORT", "65536", /whole number/],
  ["INTERNAL_PORT", "-1", /whole number/],
  ["FLEET_PORT", "1e3", /whole number/],
  ["QUEUE_MS", "10s", /whole number/],
  ["SHUTDOWN_DELAY", "601", /whole number from 0 to 600/],
  ["CLIENT_BUFFER_MIB", "0", /whole number from 1/],
  ["WORKER_SLOTS", "0", /whole number from 1/],
  ["WORKER_SLOTS", "257", /whole number from 1 to 256/],
  ["WORKER_PODS", "browsers-workers", /in a pod of the same cluster/],
  ["PUBLIC_URL", "ftp://x", /`http:\/\/` or `https:\/\/`/],
  ["ERRORS_BASE", "/errors", /address/],
  ["DATABASE_URL", "mysql://x", /`postgres:\/\/`/],
  ["ROLE", "some", /`all`, `api`, `jobs`/],
  ["ROLE", "jobs", /`jobs` only with REDIS_URL/],
  ["REDIS_URL", "redis://cache", /only with DATABASE_URL/],
  ["REDIS_URL", "redis://cache/first", /number of a database/],
  ["REDIS_URL", "redis+sentinel://one:26379,two:26379", /`redis\+sentinel:.*\/name/],
  ["REDIS_URL", "redis+sentinel://one:port,two/name", /`redis\+sentinel:.*\/name/],
  ["LOG_LEVEL", "loud", /`info`/],
  ["ACCESS_LOG", "1", /`on`/],
  ["OUTGOING_PROXY", "socks5://proxy:1080", /`http:\/\/` or `https:\/\/`/],
  ["MIGRATE", "no", /`on`, `off`/],
  ["TRUSTED_PROXIES", "10.0.0.0/33", /CIDRs/],
  ["CORS_ORIGINS", "https://a.example/path", /origins/],
  ["EMBED_ORIGINS", "https://a.example/path", /origins/],
  ["EGRESS_ALLOW", "localhost", /host:port/],
  ["ISOLATION", "auto", /`namespace`, `flags`/],
  ["BROWSER_SANDBOX", "no", /`on`, `off`/],
  ["LIVEKIT_URL", "https://media.example.com", /`ws:\/\/` or `wss:\/\/`/],
  ["WEBHOOK_ALLOW", "localhost", /host:port/],
  ["LLM_ALLOW", "localhost", /host:port/],
  ["LLM_ADDRESSES", "mistral=https://x", /provider=https/],
  ["WORKER_TOKEN", "too short", /at least 16 characters/],
  ["PROXY_CHECK", "https://example.com", /host:port/],
  ["SMTP_URL", "http://mail.example", /`smtp:\/\/` or `smtps:\/\/`/],
  ["MAIL_FROM", "Ada\r\nBcc: eve@example.com <ada@example.com>", /an address such as/],
  ["OPERATOR_EMAIL", "Ada <ada@example.com>", /an address such as/],
  ["SIGNUP", "maybe", /`open`, `closed`/],
  ["TLS_CERT", "/cert.pem", /TLS_KEY.*path of a file/],
  ["DATA_DIR", `/${"d".repeat(80)}`, /at most \d+ bytes/],
];

test.each(wrong)(
  "config rejects %s=%s with an error that names the variable and its accepted values",
  (variable, value, accepts) => {
    const read = () => readConfig({ [variable]: value }, user);
    expect(read).toThrow(accepts);
    expect(read).toThrow(variable === "TLS_CERT" ? "TLS_KEY" : variable);
  },
);

test.each([
  [{}, "LIVEKIT_API_KEY"],
  [{ LIVEKIT_API_KEY: "one" }, "LIVEKIT_API_SECRET"],
])("config with media server settings %j requires %s", (env, missing) => {
  expect(() => readConfig({ LIVEKIT_URL: "wss://media.example", ...env }, user)).toThrow(missing);
});

test.each([
  [{}, "BUNDLED_LLM_MODEL"],
  [{ BUNDLED_LLM_MODEL: "m" }, "BUNDLED_LLM_PRICE"],
  [{ BUNDLED_LLM_MODEL: "m", BUNDLED_LLM_PRICE: "3/15" }, "BUNDLED_LLM_PRICE"],
  [{ BUNDLED_LLM_MODEL: "m", BUNDLED_LLM_PRICE: "3/0.3/15/3.75/1" }, "BUNDLED_LLM_PRICE"],
  [{ BUNDLED_LLM_MODEL: "m", BUNDLED_LLM_PROVIDER: "openai_compatible" }, "BUNDLED_LLM_BASE_URL"],
])("config with LLM settings %j requires %s", (env, missing) => {
  expect(() => readConfig({ BUNDLED_LLM_API_KEY: "a key", ...env }, user)).toThrow(missing);
});

test("errors do not repeat the password of an invalid address", () => {
  expect(() => readConfig({ ...external, REDIS_URL: "http://u:hunter2@x" }, user)).toThrow(/^(?!.*hunter2).*REDIS_URL/);
});

test.each([
  [{}, "SMTP_URL"],
  [{ SMTP_URL: "smtp://mail.example" }, "MAIL_FROM"],
  [{ SMTP_URL: "smtp://mail.example", SIGNUP: "closed" }, "MAIL_FROM"],
  [{ MAIL_FROM: "mail@example.com" }, "SMTP_URL"],
])("config for a deployment with %j requires %s", (env, missing) => {
  expect(() => readConfig({ ...external, SIGNUP: "", ...env }, user)).toThrow(missing);
});

test("config sends mail from the configured sender and sends none by default in embedded mode", () => {
  const mail = { SMTP_URL: "smtps://user:secret@mail.example", MAIL_FROM: "Ada <ada@example.com>" };
  const read = { smtpUrl: mail.SMTP_URL, mailFrom: mail.MAIL_FROM, signup: "open" };
  expect(readConfig({ ...external, ...mail, SIGNUP: "" }, user)).toMatchObject(read);
  expect(readConfig({}, user)).toMatchObject({ smtpUrl: undefined, signup: "open" });
});

test("config requires WORKER_TOKEN if workers connect over the network", () => {
  expect(() => readConfig({ DATABASE_URL: "postgres://db/x" }, user)).toThrow(/WORKER_TOKEN accepts a secret/);
});

test("config requires SECRETS_KEYS on every gateway and generates a key only in embedded mode", () => {
  expect(readConfig(external, user).secretsKeys).toHaveLength(1);
  expect(readConfig({}, user).secretsKeys).toEqual([]);
  expect(() => readConfig({ ...external, SECRETS_KEYS: "" }, user)).toThrow(
    /^SECRETS_KEYS is required with DATABASE_URL: `id:key`/,
  );
});

test.each([
  ["linux", {}, { isolation: "namespace", browserSandbox: "on" }],
  ["linux", { ISOLATION: "flags", BROWSER_SANDBOX: "off" }, { isolation: "flags", browserSandbox: "off" }],
  ["darwin", {}, { isolation: "flags", browserSandbox: "on" }],
] as const)("config on %s with %j sets the isolation", (platform, env, expected) => {
  expect(readIsolation(readerOf(env), platform)).toEqual(expected);
});

test("config rejects network namespaces on systems without them", () => {
  expect(() => readIsolation(readerOf({ ISOLATION: "namespace" }), "darwin")).toThrow(/ISOLATION .* on Linux only/);
});

test("config exports traces only with a collector", () => {
  expect(readConfig({ OTEL_TRACES_SAMPLER_ARG: "0.5" }, user).traces).toBeUndefined();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/" };
  expect(readConfig(env, user).traces).toEqual({ endpoint: "http://collector:4318", share: 1 });
  expect(readConfig({ ...env, OTEL_TRACES_SAMPLER_ARG: "0.25" }, user).traces).toMatchObject({ share: 0.25 });
  for (const wrong of ["2", "-1", "1.5", "x", ".5"])
    expect(() => readConfig({ ...env, OTEL_TRACES_SAMPLER_ARG: wrong }, user)).toThrow(
      /OTEL_TRACES_SAMPLER_ARG accepts/,
    );
  expect(() => readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector" }, user)).toThrow(/OTEL_EXPORTER_OTLP_ENDPOINT/);
});
