import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { type DescMethodUnary, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { expect } from "vitest";
import { Gateway } from "../../gateway/gateway.ts";
import { type App, createApp } from "../../src/app.ts";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { httpRouteOf } from "../../src/http-route.ts";
import { readConfig } from "../../src/platform/config.ts";
import { errorTable, extensionsOf, isErrorSlug } from "../../src/platform/error-table.ts";
import { makeDataDirectory, silentLog } from "./database.ts";
import { freePorts } from "./free-port.ts";
import { type Mailbox, startMailbox } from "./mailbox.ts";
import { type Person, type PersonChoice, signUp } from "./people.ts";

/** The doors that unary methods have. */
export const doors = ["REST", "Connect", "gRPC", "gRPC on GRPC_PORT"] as const;
export type DoorName = (typeof doors)[number];

/** What a caller shows of itself. */
export interface Shown {
  readonly token?: string | undefined;
  /** Address of the client; by default each call has another one, of one network. */
  readonly from?: string;
  readonly userAgent?: string;
}

/** What became of a call, alike for every door. */
export interface Outcome {
  /** Empty where it went well. */
  readonly slug: string;
  readonly extensions: Readonly<Record<string, unknown>>;
  /** The answer, as Connect's JSON has it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly answer: any;
  readonly headers: Headers;
}

/** A gateway in this process whose users get their mails, and whose time tests own. */
export interface PeopleGateway extends AsyncDisposable {
  readonly url: string;
  readonly app: App;
  readonly mailbox: Mailbox;
  call(door: DoorName, method: DescMethodUnary, request: JsonValue, shown?: Shown): Promise<Outcome>;
  signUp(choice?: PersonChoice): Promise<Person>;
  /** Lets time pass, in milliseconds. */
  pass(milliseconds: number): void;
  now(): number;
}

/** Starts it. */
export async function startPeopleGateway(env: Readonly<Record<string, string>> = {}): Promise<PeopleGateway> {
  const [mailbox, dataDir] = await Promise.all([startMailbox(), makeDataDirectory()]);
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT", "FLEET_PORT");
  const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const more = { DATA_DIR: dataDir, SMTP_URL: mailbox.url, TRUSTED_PROXIES: "127.0.0.1", ...env };
  let passed = 0;
  const now = () => Date.now() + passed;
  const config = readConfig({ ...variables, ...more });
  const app = createApp(config, { log: silentLog, workerProgram: null, clock: { now } });
  const gateway = new Gateway(app);
  await app.start();
  await gateway.start();
  const url = `http://127.0.0.1:${ports.PORT}`;
  const transports: Record<Exclude<DoorName, "REST">, Transport> = {
    Connect: createConnectTransport({ baseUrl: url, httpVersion: "1.1" }),
    gRPC: createGrpcTransport({ baseUrl: url }),
    "gRPC on GRPC_PORT": createGrpcTransport({ baseUrl: `http://127.0.0.1:${ports.GRPC_PORT}` }),
  };
  return {
    ...{ url, app, mailbox, now },
    call(door, method, request, shown = {}) {
      const headers = headersOf(shown);
      return door === "REST"
        ? callRest(url, method, request, headers)
        : callRpc(transports[door], method, request, headers);
    },
    signUp: (choice) => signUp(url, mailbox, choice),
    pass(milliseconds) {
      passed += milliseconds;
    },
    async [Symbol.asyncDispose]() {
      await gateway.stop();
      await app.stop();
      await mailbox[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function headersOf({ token, from, userAgent = "tests/1" }: Shown): Record<string, string> {
  return {
    "x-forwarded-for": from ?? `2001:db8:1:${randomBytes(2).toString("hex")}::1`,
    "user-agent": userAgent,
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
}

async function callRest(
  url: string,
  method: DescMethodUnary,
  request: JsonValue,
  headers: Record<string, string>,
): Promise<Outcome> {
  const route = httpRouteOf(method);
  if (!route) throw new Error(`${method.name} is not to be had over REST`);
  const fields = new Map(Object.entries(Object(request)));
  const path = route.template.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const value = String(fields.get(name));
    fields.delete(name);
    return encodeURIComponent(value);
  });
  const { hasBody } = route;
  const response = await fetch(`${url}${path}`, {
    method: route.verb,
    headers: { ...headers, ...(hasBody && { "content-type": "application/json" }) },
    ...(hasBody && { body: JSON.stringify(Object.fromEntries(fields)) }),
  });
  const text = await response.text();
  const answer = text === "" ? {} : JSON.parse(text);
  if (response.ok) return { slug: "", extensions: {}, answer, headers: response.headers };
  const slug = answer.type.split("/").at(-1);
  expect(isErrorSlug(slug) && errorTable[slug].status).toBe(response.status);
  return { slug, extensions: knownExtensions(slug, answer), answer, headers: response.headers };
}

async function callRpc(
  transport: Transport,
  method: DescMethodUnary,
  request: JsonValue,
  headers: Record<string, string>,
): Promise<Outcome> {
  try {
    const input = fromJson(method.input, request);
    const { message, header } = await transport.unary(method, undefined, 30_000, headers, input);
    const answer = toJson(method.output, message, { useProtoFieldName: true });
    return { slug: "", extensions: {}, answer, headers: header };
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const [info] = error.findDetails(ErrorInfoSchema);
    if (!info) throw thrown;
    const slug = info.reason;
    expect(isErrorSlug(slug) && errorTable[slug].code).toBe(error.code);
    return { slug, extensions: knownExtensions(slug, info.metadata), answer: undefined, headers: error.metadata };
  }
}

/** The extensions of a problem, as text: gRPC's metadata has nothing else. */
function knownExtensions(slug: string, members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (!isErrorSlug(slug)) return {};
  const names = Object.keys(extensionsOf(slug)).filter((name) => members[name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, String(members[name])]));
}
