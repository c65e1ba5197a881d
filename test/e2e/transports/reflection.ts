import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { create, createFileRegistry, fromBinary, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { loadFileDescriptorSetFromBuffer, loadSync, type MethodDefinition } from "@grpc/proto-loader";
import { protoPath as healthProto } from "grpc-health-check";
import { expect, test } from "vitest";
import { StatusSchema } from "../../../src/gen/google/rpc/status_pb.ts";
import { bearer, type Loose, loaderOptions, methodOf, unary } from "../support/grpc-client.ts";
import type { GetScene } from "./scene.ts";

const reflectionProto = join(
  dirname(createRequire(import.meta.url).resolve("@grpc/reflection")),
  "../proto/grpc/reflection/v1/reflection.proto",
);

/** Sends one request to a server's reflection service. */
async function reflect(client: Client, question: Loose): Promise<Loose> {
  const service = loadSync(reflectionProto, loaderOptions);
  const { path, requestSerialize, responseDeserialize } = methodOf(
    service,
    "grpc.reflection.v1.ServerReflection",
    "ServerReflectionInfo",
  );
  const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, {
    deadline: Date.now() + 10_000,
  });
  stream.write(question);
  stream.end();
  const answers: Loose[] = [];
  for await (const answer of stream) {
    answers.push(answer);
  }
  return answers[0];
}

async function listServices(client: Client): Promise<string[]> {
  const listed = await reflect(client, { list_services: "" });
  return listed.list_services_response.service.map(({ name }: { name: string }) => name);
}

/** Returns the files that define a service or a message. */
async function filesOf(client: Client, symbol: string): Promise<FileDescriptorSet> {
  const found = await reflect(client, { file_containing_symbol: symbol });
  expect(found.error_response, symbol).toBeUndefined();
  const files: Buffer[] = found.file_descriptor_response.file_descriptor_proto;
  return create(FileDescriptorSetSchema, { file: files.map((file) => fromBinary(FileDescriptorProtoSchema, file)) });
}

async function describedMethod(client: Client, service: string, name: string): Promise<MethodDefinition<Loose, Loose>> {
  const set = Buffer.from(toBinary(FileDescriptorSetSchema, await filesOf(client, service)));
  return methodOf(loadFileDescriptorSetFromBuffer(set, loaderOptions), service, name);
}

/** Converts a message to JSON by the server's reflected type. */
async function show(client: Client, type: string, bytes: Uint8Array): Promise<JsonValue> {
  const { file: files } = await filesOf(client, type);
  const [own] = files;
  if (!own) throw new Error(`there are no files of ${type}`);
  const registry = createFileRegistry(own, (name) => files.find((file) => file.name === name));
  const desc = registry.getMessage(type);
  if (!desc) throw new Error(`the files of ${type} do not have it`);
  return toJson(desc, fromBinary(desc, bytes), { registry });
}

/** Calls of a client without the service's protos or code. */
export function reflectionTests(scene: GetScene): void {
  test("a client that only uses reflection can call List on GRPC_PORT", async () => {
    const { service } = scene();
    const client = new Client(service.grpcAddress, credentials.createInsecure());
    try {
      expect(await listServices(client)).toContain("pilothouse.v1.SessionService");
      const list = await describedMethod(client, "pilothouse.v1.SessionService", "List");
      const { answer } = await unary(client, list, { limit: 1 }, bearer(service.key));
      expect(answer.data).toHaveLength(1);
    } finally {
      client.close();
    }
  });

  test("reflection describes the health service and the details of errors", async () => {
    const { service, sessionId } = scene();
    const client = new Client(service.grpcAddress, credentials.createInsecure());
    try {
      expect(await listServices(client)).toContain("grpc.health.v1.Health");
      const check = await describedMethod(client, "grpc.health.v1.Health", "Check");
      expect((await unary(client, check, {}, bearer(""))).answer).toEqual({ status: "SERVING" });
      const navigate = await describedMethod(client, "pilothouse.v1.SessionService", "Navigate");
      const { error } = await unary(client, navigate, { id: sessionId, url: "" }, bearer(service.key));
      const [bytes = ""] = error?.metadata.get("grpc-status-details-bin") ?? [];
      const { details } = fromBinary(StatusSchema, Buffer.from(bytes));
      const shown = details.map(({ typeUrl, value }) => show(client, typeUrl.replace(/^.*\//, ""), value));
      expect(await Promise.all(shown)).toMatchObject([
        { reason: "validation-failed", domain: "pilothouse" },
        { fieldViolations: [{ field: "url" }] },
      ]);
    } finally {
      client.close();
    }
  });

  test("PORT has no reflection", async () => {
    const client = new Client(new URL(scene().service.url).host, credentials.createInsecure());
    try {
      const refused: Promise<ServiceError> = reflect(client, { list_services: "" });
      await expect(refused).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
    } finally {
      client.close();
    }
  });

  test("GRPC_PORT reports its health", async () => {
    const client = new Client(scene().service.grpcAddress, credentials.createInsecure());
    try {
      const check = methodOf(loadSync(healthProto, loaderOptions), "grpc.health.v1.Health", "Check");
      for (const service of ["", "pilothouse.v1.SessionService"]) {
        const { answer } = await unary(client, check, { service }, bearer(""));
        expect(answer).toEqual({ status: "SERVING" });
      }
      const { error } = await unary(client, check, { service: "no.such.Service" }, bearer(""));
      expect(error?.code).toBe(status.NOT_FOUND);
    } finally {
      client.close();
    }
  });
}
