import { readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { releaseVersion } from "../../src/platform/release.ts";
import { readComments } from "../openapi/comments.ts";
import { buildOpenApi } from "../openapi/document.ts";
import { unimplemented } from "../openapi/unimplemented.ts";
import { renderDocs } from "./docs-page.ts";
import type { Documents, DocumentsTask } from "./documents.ts";

/** Descriptors with the comments of the proto files, which the generated code does not have. */
const image = fromBinary(FileDescriptorSetSchema, readFileSync(new URL("../../src/gen/image.binpb", import.meta.url)));

/** Builds the documents of services. Omits services that are not in the descriptor image. */
function makeDocuments({ services, publicUrl, errorsBase }: DocumentsTask): Documents {
  const registry = createFileRegistry(image);
  const served = services.flatMap((name) => registry.getService(name) ?? []).map(unimplemented);
  const comments = readComments(image);
  const document = buildOpenApi(served, { publicUrl, errorsBase, version: releaseVersion, comments });
  return { openApiJson: `${JSON.stringify(document)}\n`, docsHtml: renderDocs(document) };
}

parentPort?.postMessage(makeDocuments(workerData));
