import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import type { DescMethod, JsonValue } from "@bufbuild/protobuf";
import { Gateway } from "../../gateway/gateway.ts";
import { type App, type AppOptions, createApp } from "../../src/app/app.ts";
import { readConfig } from "../../src/platform/config.ts";
import { admin } from "./admin.ts";
import { cheapPasswords } from "./cheap-passwords.ts";
import { createSharedDatabase, makeDataDirectory, silentLog } from "./database.ts";
import { freePorts } from "./free-port.ts";
import { watchForSecrets } from "./leaks.ts";
import { type Mailbox, startMailbox } from "./mailbox.ts";
import { type Person, type PersonChoice, signUp } from "./people.ts";
import { createTestClock } from "./test-clock.ts";
import { createTransportCall, type Outcome, type TransportName } from "./transport-calls.ts";

/** Properties of a caller's requests. */
export interface Shown {
  readonly token?: string | undefined;
  /** Address of the client; by default a new one in the same network for each call. */
  readonly from?: string;
  readonly userAgent?: string;
  /** Request id set by the client. */
  readonly requestId?: string;
}

/** Gateway in this process with e-mail to users, and time controlled by the test. */
export interface PeopleGateway extends AsyncDisposable {
  readonly url: string;
  readonly app: App;
  readonly mailbox: Mailbox;
  call(transport: TransportName, method: DescMethod, request: JsonValue, shown?: Shown): Promise<Outcome>;
  signUp(choice?: PersonChoice): Promise<Person>;
  /** Runs an operator command in this process. */
  admin(...args: readonly string[]): Promise<string>;
  /** Advances the time by milliseconds and runs the repeated jobs that are due. */
  pass(milliseconds: number): void;
  now(): number;
}

export async function startPeopleGateway(
  env: Readonly<Record<string, string>> = {},
  options: Pick<AppOptions, "statusEvery"> = {},
): Promise<PeopleGateway> {
  const [mailbox, dataDir] = await Promise.all([startMailbox(), makeDataDirectory()]);
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT", "FLEET_PORT");
  const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const mail = { SMTP_URL: mailbox.url, MAIL_FROM: "Pilothouse <mail@example.com>" };
  const more = { DATA_DIR: dataDir, ...mail, TRUSTED_PROXIES: "127.0.0.1", ...env };
  const clock = createTestClock();
  const config = readConfig({ ...variables, ...more });
  const database = config.embedded ? await createSharedDatabase() : undefined;
  const fixed = { log: silentLog, workerProgram: null, passwords: cheapPasswords } as const;
  const app = createApp(config, { ...options, ...fixed, clock, database });
  const gateway = new Gateway(app);
  await app.start();
  await gateway.start();
  const url = `http://127.0.0.1:${ports.PORT}`;
  const { now, advance: pass } = clock;
  const call = createTransportCall({ url, grpcAddress: `127.0.0.1:${ports.GRPC_PORT}` });
  return {
    url,
    app,
    mailbox,
    now,
    pass,
    call: (transport, method, request, shown = {}) => call(transport, method, request, headersOf(shown)),
    signUp: (choice) => signUp(url, mailbox, choice),
    admin: (...args) => admin({ DATABASE_URL: database?.url ?? "", DATA_DIR: dataDir }, ...args),
    async [Symbol.asyncDispose]() {
      watchForSecrets(await app.metrics.metrics());
      await gateway.stop();
      await app.stop();
      await database?.[Symbol.asyncDispose]();
      await mailbox[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function headersOf({ token, from, userAgent = "tests/1", requestId }: Shown): Record<string, string> {
  return {
    ...(requestId !== undefined && { "x-request-id": requestId }),
    "x-forwarded-for": from ?? `2001:db8:1:${randomBytes(2).toString("hex")}::1`,
    "user-agent": userAgent,
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
}
