import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { loadFileDescriptorSetFromBuffer, loadSync } from "@grpc/proto-loader";
import { protoPath as healthProto } from "grpc-health-check";
import { expect, test } from "vitest";
import { bearer, type Loose, loaderOptions, methodOf, unary } from "../support/grpc-client.ts";
import type { GetScene } from "./scene.ts";

const reflectionProto = join(
  dirname(createRequire(import.meta.url).resolve("@grpc/reflection")),
  "../proto/grpc/reflection/v1/reflection.proto",
);

/** Asks a server's reflection service one question. */
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

/** What a client knows that has neither our protos nor our code. */
export function reflectionTests(scene: GetScene): void {
  test("a client made of nothing but reflection calls List on GRPC_PORT", async () => {
    const { service } = scene();
    const client = new Client(service.grpcAddress, credentials.createInsecure());
    try {
      const listed = await reflect(client, { list_services: "" });
      const names = listed.list_services_response.service.map(({ name }: { name: string }) => name);
      expect(names).toContain("pilothouse.v1.SessionService");
      const found = await reflect(client, { file_containing_symbol: "pilothouse.v1.SessionService" });
      const files: Buffer[] = found.file_descriptor_response.file_descriptor_proto;
      const set = create(FileDescriptorSetSchema, {
        file: files.map((file) => fromBinary(FileDescriptorProtoSchema, file)),
      });
      const definition = loadFileDescriptorSetFromBuffer(
        Buffer.from(toBinary(FileDescriptorSetSchema, set)),
        loaderOptions,
      );
      const list = methodOf(definition, "pilothouse.v1.SessionService", "List");
      const { answer } = await unary(client, list, { limit: 1 }, bearer(service.key));
      expect(answer.data).toHaveLength(1);
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

  test("GRPC_PORT tells its health", async () => {
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
