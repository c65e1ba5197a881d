import { type DescMethodUnary, type JsonObject, toJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requestExample } from "../../gateway/openapi/examples.ts";
import { compileReader } from "../../src/platform/rest-json/reader.ts";
import { builtServices } from "../contract/described-services.ts";
import { strangeKey } from "../e2e/support/accounts.ts";
import { FakeWorker } from "../support/fake-worker.ts";
import { type DoorName, type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { restClient } from "../support/rest.ts";

const workerToken = "a token of the tests alone";

let gateway: PeopleGateway;
let worker: FakeWorker;

beforeAll(async () => {
  gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken });
  worker = new FakeWorker({ gateway: `unix:${gateway.app.config.dataDir}/fleet.sock`, token: workerToken, slots: 10 });
  await worker.start();
});
afterAll(async () => {
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
});

/** A method that asks for a bearer and answers one message. */
interface GuardedMethod {
  readonly name: string;
  readonly method: DescMethodUnary;
  /** The variables of its path: with them it is about one thing. */
  readonly variables: readonly string[];
  /** The field that is a raw body. It stays empty. */
  readonly rawBody: string | undefined;
}

const guarded: readonly GuardedMethod[] = builtServices
  .flatMap(({ methods }) => methods)
  .flatMap(({ kind, method, name, route, rules }) => {
    if (kind !== "unary" || rules.public || !route) return [];
    const variables = [...route.template.matchAll(/\{(\w+)\}/g)].flatMap(([, variable = ""]) => variable);
    return [{ name, method: method as DescMethodUnary, variables, rawBody: route.rawBody?.name }];
  });

/** Identifiers of things of one account, by the service that has them. A new service with things has its line here. */
type Things = Readonly<Record<string, string | undefined>>;

/** Makes one of each thing that there is. */
async function makeThings(): Promise<{ things: Things; narrow: string; ended: string }> {
  const { accessToken, rest } = await gateway.signUp();
  const [narrow, ended] = [
    (await rest("/v1/api-keys", { name: "narrow", scopes: ["webhooks:read"] })).body,
    (await rest("/v1/api-keys", { name: "ended" })).body,
  ];
  await rest(`/v1/api-keys/${ended.id}`, undefined, { method: "DELETE" });
  const session = (await rest("/v1/sessions", {})).body.id;
  const profile = (await rest("/v1/profiles", { name: "Shop" })).body.id;
  const [login] = (await restClient({ url: gateway.url, key: accessToken })("/v1/account/logins")).body.data;
  const [member] = (await rest("/v1/team/members")).body.data;
  const things = {
    ApiKeyService: narrow.id,
    FileService: session,
    LoginService: login.id,
    ProfileService: profile,
    SessionService: session,
    TeamService: member.id,
  };
  expect(Object.entries(things).filter(([, id]) => typeof id !== "string")).toEqual([]);
  return { things, narrow: narrow.key, ended: ended.key };
}

/** A valid request about a thing, as the door takes it. */
function requestTo(
  { name, method, variables, rawBody = "" }: GuardedMethod,
  things: Things,
  door: DoorName,
): JsonObject {
  const leftOut = new Set([...variables, rawBody]);
  const [service = ""] = name.split(".");
  const id = things[service];
  if (variables.length > 0 && id === undefined) throw new Error(`the walk has no thing of ${service}: give it one`);
  const path = Object.fromEntries(variables.map((variable) => [variable, variable === "name" ? "a.txt" : (id ?? "")]));
  const example = requestExample(method.input, leftOut);
  if (door === "REST") return { ...Object(example), ...path };
  const message = compileReader(method.input, leftOut)(example, []);
  return { ...Object(toJson(method.input, message, { useProtoFieldName: true })), ...path };
}

// On the main port gRPC is Connect's handler in another encoding.
const walked: readonly DoorName[] = ["REST", "Connect", "gRPC on GRPC_PORT"];

describe.each(walked)("over %s", (door) => {
  let made: Awaited<ReturnType<typeof makeThings>>;
  beforeAll(async () => {
    made = await makeThings();
  });

  /** What is answered to every method, or to those about one thing, of whom it is asked by. */
  async function answersTo(token: string | undefined, methods = guarded): Promise<[name: string, slug: string][]> {
    const answers: [string, string][] = [];
    for (const served of methods) {
      const { slug } = await gateway.call(door, served.method, requestTo(served, made.things, door), { token });
      answers.push([served.name, slug]);
    }
    return answers;
  }
  const all = (slug: string, methods = guarded) => methods.map(({ name }) => [name, slug]);

  test("nobody is unauthorized at every method", async () => {
    expect(await answersTo(undefined)).toEqual(all("unauthorized"));
  });

  test("a wrong key is invalid at every method", async () => {
    expect(await answersTo(strangeKey())).toEqual(all("invalid-key"));
  });

  test("a revoked key is told so at every method", async () => {
    expect(await answersTo(made.ended)).toEqual(all("revoked-key"));
  });

  test("a key without the scope, or where a person has to act, is forbidden at every method", async () => {
    expect(await answersTo(made.narrow)).toEqual(all("forbidden"));
  });

  test("another account finds nothing of this one's at any method", async () => {
    const { accessToken } = await gateway.signUp();
    const aboutOne = guarded.filter(({ variables }) => variables.length > 0);
    expect(await answersTo(accessToken, aboutOne)).toEqual(all("not-found", aboutOne));
  });
});
