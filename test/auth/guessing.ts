import { Agent, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { expect } from "vitest";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { AuthService, LogInRequestSchema } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import type { DeployedGateway } from "../support/deployment.ts";
import { freshEmail, type Person, signUp, tokenOfMail } from "../support/people.ts";
import type { PeopleDeployment } from "../support/people-deployment.ts";
import { restClient } from "../support/rest.ts";

const password = "not the right password";

/** Tries of strangers per hour and address. */
const strangersTries = 20;

/** Number of clients, each with its own loopback address and network. */
const clientCount = 50;

/** Number of batches of guesses. An owner logs in during each batch. */
const parts = 5;

export interface Siege {
  readonly guesses: number;
  readonly addresses: number;
  /** Index of the loopback network. Earlier networks have exhausted their rate limits. */
  readonly network: number;
}

/** Answer to a guess, without numbers and request id. */
type Guess = (email: string) => Promise<{ slug: string; told: string }>;

const withoutNumbers = (told: unknown): string => JSON.stringify(told).replaceAll(/\d+/g, "N");

/** Guesses over REST from a loopback address. */
function overRest(url: string, localAddress: string): Guess {
  const agent = new Agent({ keepAlive: true, localAddress });
  const headers = { "content-type": "application/json" };
  return async (email) => {
    const sent = request(`${url}/v1/auth/login`, { method: "POST", agent, headers });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    sent.once("error", reject).once("response", (response) => text(response).then(resolve, reject));
    sent.end(JSON.stringify({ email, password }));
    const { instance: _, ...problem } = JSON.parse(await promise);
    return { slug: problem.type.split("/").at(-1), told: withoutNumbers(problem) };
  };
}

function overRpc(transport: Transport): Guess {
  return async (email) => {
    const guessed = transport.unary(
      AuthService.method.logIn,
      undefined,
      60_000,
      undefined,
      create(LogInRequestSchema, { email, password }),
    );
    const error = ConnectError.from(await guessed.catch((thrown: unknown) => thrown));
    const [{ reason: slug = "", metadata = {} } = {}] = error.findDetails(ErrorInfoSchema);
    return { slug, told: withoutNumbers([error.code, error.message, { ...metadata, request_id: undefined }]) };
  };
}

/** Creates a client of one of the four transports, with its own loopback address and network. */
function clientAt({ url, grpcAddress }: DeployedGateway, network: number, index: number): Guess {
  const localAddress = `127.${network}.${index}.1`;
  const createConnection = ({ hostname: host, port }: URL) => connect({ host, port: Number(port), localAddress });
  const grpc = (baseUrl: string) => overRpc(createGrpcTransport({ baseUrl, nodeOptions: { createConnection } }));
  const connectOptions = { baseUrl: url, httpVersion: "1.1", nodeOptions: { localAddress } } as const;
  const transportNames = [
    () => overRest(url, localAddress),
    () => overRpc(createConnectTransport(connectOptions)),
    () => grpc(url),
    () => grpc(`http://${grpcAddress}`),
  ];
  // Consecutive clients use the same transport of different gateways.
  return transportNames[Math.floor(index / 2) % transportNames.length]?.() ?? overRest(url, localAddress);
}

/** Counts the password hashes of all gateways. */
async function countHashes({ gateways }: PeopleDeployment["deployment"]): Promise<number> {
  const metrics = await Promise.all(gateways.map((gateway) => gateway.metrics()));
  const counts = metrics.map((all) =>
    Number(/^pilothouse_password_hashes_total\{role="gateway"\} (\d+)$/m.exec(all)?.[1]),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Logs an owner in by password from the known network. */
async function logInFromHome(url: string, { email, password }: Person): Promise<void> {
  const headers = { "x-forwarded-for": "203.0.113.5" };
  const { status } = await restClient({ url, key: "" })("/v1/auth/login", { email, password }, { headers });
  expect(status).toBe(200);
}

/** Logs a user in by a mailed link from an unknown network. */
async function logInByLink({ urls, mailbox }: PeopleDeployment, { email }: Person): Promise<void> {
  const rest = restClient({ url: urls[1], key: "" });
  const headers = { "x-forwarded-for": "192.0.2.7" };
  expect((await rest("/v1/auth/magic-link/request", { email }, { headers })).status).toBe(202);
  const token = await tokenOfMail(mailbox, email);
  expect((await rest("/v1/auth/magic-link/consume", { token }, { headers })).status).toBe(200);
}

/**
 * Guesses passwords from 50 addresses over all transports of two gateways, half of them for unknown users. Each address costs
 * only the hashes of an hour, answers do not reveal users, and an owner can log in at any time.
 */
export async function besiege(people: PeopleDeployment, { guesses, addresses, network }: Siege): Promise<void> {
  const { deployment, mailbox, urls } = people;
  const users = await Promise.all(Array.from({ length: addresses }, () => signUp(urls[0], mailbox)));
  const [owner] = users;
  if (!owner) throw new Error("expected an owner");
  await logInFromHome(urls[0], owner);
  const targets = users.flatMap(({ email }) => [email, freshEmail()]);
  const clients = Array.from({ length: clientCount }, (_, index) =>
    clientAt(deployment.gateway(index % 2), network, index),
  );
  const told = new Map(targets.map((email) => [email, [] as Awaited<ReturnType<Guess>>[]]));
  const before = await countHashes(deployment);

  async function guessFrom(client: Guess, first: number, count: number): Promise<void> {
    for (let guess = first; guess < first + count; guess += 1) {
      const email = targets[guess % targets.length] ?? "";
      told.get(email)?.push(await client(email));
    }
  }

  const share = guesses / clientCount / parts;
  for (let part = 0; part < parts; part += 1) {
    const guessing = clients.map((client, index) => guessFrom(client, index + part * share, share));
    await Promise.all([...guessing, logInFromHome(urls[part % 2 === 0 ? 0 : 1], owner)]);
  }
  await logInByLink(people, owner);

  expect((await countHashes(deployment)) - before).toBe(targets.length * strangersTries + parts);
  for (const outcomes of told.values()) {
    const slugs = outcomes.map(({ slug }) => slug);
    expect(slugs.filter((slug) => slug === "invalid-credentials")).toHaveLength(strangersTries);
    expect(new Set(slugs)).toEqual(new Set(["invalid-credentials", "rate-limited"]));
  }
  const toldOf = (isUser: boolean) => {
    const emails = targets.filter((_, index) => (index % 2 === 0) === isUser);
    return [...new Set(emails.flatMap((email) => told.get(email) ?? []).map(({ told: words }) => words))].sort();
  };
  expect(toldOf(true)).toEqual(toldOf(false));
}
