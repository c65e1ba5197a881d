import { copyFile, cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import { Gateway } from "../../gateway/gateway.ts";
import { type TimeLimits, timeLimits } from "../../gateway/time-limits.ts";
import { createApp } from "../../src/app/app.ts";
import { type HttpBody, HttpBodySchema } from "../../src/gen/google/api/httpbody_pb.ts";
import type { Call } from "../../src/kernel/call.ts";
import { type ServiceImplementation, serve } from "../../src/kernel/registry.ts";
import { bytesOfBody } from "../../src/kernel/request-body.ts";
import { readConfig } from "../../src/platform/config.ts";
import { createLog } from "../../src/platform/log.ts";
import { buildContracts } from "../contract/contract-image.ts";
import { createSharedDatabase, databaseUrl, type EmptyDatabase, makeDataDirectory } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";

/** Gateway for the service of transports.proto, within the test process. */
export interface TransportGateway extends AsyncDisposable {
  readonly url: string;
  readonly grpcAddress: string;
  readonly key: string;
  readonly databaseUrl: string;
  /** Returns a method of the service. */
  readonly method: (name: string) => DescMethod;
  /** Logged internal errors. */
  readonly logged: readonly string[];
  /** IDs of things with an open stream. */
  readonly followed: ReadonlySet<string>;
}

/** The two parts that GetFile sends, with different bytes to verify their order. */
export const bodyParts = [Buffer.alloc(100_000, "a"), Buffer.alloc(100_000, "b")] as const;

/** Starts the gateway with a new database, or with `given`, which the caller must dispose. */
export async function startTransportGateway(
  env: Readonly<Record<string, string>> = {},
  limits: TimeLimits = timeLimits,
  given?: EmptyDatabase,
): Promise<TransportGateway> {
  const dataDir = await makeDataDirectory();
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const config = readConfig({ DATA_DIR: dataDir, ...variables, ...env });
  const logged: string[] = [];
  const database = given ?? (await createSharedDatabase());
  const app = createApp(config, {
    log: createLog("error", { write: (line) => logged.push(line) }),
    workerProgram: null,
    database,
  });
  const followed = new Set<string>();
  const service = await loadService();
  const gateway = new Gateway(app, { services: [serve(service, implement(service, followed))], limits });
  await app.start();
  await gateway.start();
  return {
    url: `${config.tls ? "https" : "http"}://127.0.0.1:${ports.PORT}`,
    grpcAddress: `127.0.0.1:${ports.GRPC_PORT}`,
    key: app.developerKey ?? "",
    databaseUrl: database?.url ?? databaseUrl(join(dataDir, "postgres", "run")),
    method: (name) => methodOf(service, name),
    logged,
    followed,
    async [Symbol.asyncDispose]() {
      await gateway.stop();
      await app.stop();
      if (database !== given) await database?.[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

type Service = GenService<GenServiceMethods>;

/** Builds transports.proto together with the contract's protos, which it imports. */
async function loadService(): Promise<Service> {
  const directory = await mkdtemp(join(tmpdir(), "pilothouse-transports-"));
  try {
    const root = join(import.meta.dirname, "../..");
    await cp(join(root, "proto"), directory, { recursive: true });
    await copyFile(join(import.meta.dirname, "transports.proto"), join(directory, "transports.proto"));
    const [service] = (await buildContracts(directory))("pilothouse.test").services;
    if (!service) throw new Error("transports.proto has no service");
    // Cast, since the descriptor is only known at run time.
    return service as Service;
  } finally {
    await rm(directory, { recursive: true });
  }
}

function methodOf(service: Service, name: string): DescMethod {
  const method = service.methods.find((candidate) => candidate.name === name);
  if (!method) throw new Error(`there is no method ${name}`);
  return method;
}

interface Fields {
  readonly id: string;
  readonly name: string;
  readonly thingId: string;
  readonly text: string;
  readonly data: Uint8Array;
  readonly content?: HttpBody;
}

function implement(service: Service, followed: Set<string>): ServiceImplementation<Service> {
  const answer = (name: string, fields: Record<string, unknown>): Message =>
    create(methodOf(service, name).output, fields);
  const methods = {
    async putFile(call: Call, { name, content }: Fields) {
      let bytes = 0;
      for await (const chunk of bytesOfBody(call, content)) bytes += chunk.length;
      return answer("PutFile", { contentType: content?.contentType ?? "", name, bytes });
    },
    async *getFile(call: Call, { id }: Fields) {
      followed.add(id);
      call.signal.addEventListener("abort", () => followed.delete(id), { once: true });
      yield create(HttpBodySchema, { contentType: "text/html", data: bodyParts[0] });
      if (id === "broken") throw new Error("the disk is gone");
      yield create(HttpBodySchema, { data: bodyParts[1] });
    },
    async *follow(call: Call, { id }: Fields) {
      followed.add(id);
      try {
        yield answer("Follow", { text: "first" });
        await new Promise((resolve) => call.signal.addEventListener("abort", resolve, { once: true }));
      } finally {
        followed.delete(id);
      }
    },
    async break(_call: Call, { id }: Fields) {
      throw Object.assign(new Error("the card was declined"), { code: id, statusCode: 402 });
    },
    async talk(_call: Call, { text: opening }: Fields) {
      if (opening === "break") throw new Error("the talk broke");
      return {
        async *answer({ thingId, text, data }: Fields) {
          yield { thingId, text, data };
        },
      };
    },
  };
  return methods as unknown as ServiceImplementation<Service>;
}
