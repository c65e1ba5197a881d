import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { readComments } from "../gateway/openapi/comments.ts";
import { buildOpenApi } from "../gateway/openapi/document.ts";
import type { OpenApiDocument } from "../gateway/openapi/model.ts";
import { unimplemented } from "../gateway/openapi/unimplemented.ts";
import { features } from "../src/app/features.ts";
import type { ServedService } from "../src/kernel/registry.ts";

const image = fromBinary(FileDescriptorSetSchema, readFileSync(new URL("../src/gen/image.binpb", import.meta.url)));

/** Services that are implemented. */
export const builtServices: readonly ServedService[] = features
  .flatMap(({ service = [] }) => service)
  .map(unimplemented);

/** All public services of the contract, implemented or not. */
export const allServices: readonly ServedService[] = [...createFileRegistry(image).files]
  .filter((file) => file.proto.package === "pilothouse.v1")
  .flatMap((file) => file.services)
  .map(unimplemented);

/** Builds the OpenAPI document for a gateway at the default address. */
export function describeServices(services: readonly ServedService[]): OpenApiDocument {
  return buildOpenApi(services, {
    publicUrl: "http://localhost:8080",
    errorsBase: "http://localhost:8080/errors",
    version: "0.1.0",
    comments: readComments(image),
  });
}
