import { fileURLToPath } from "node:url";
import { type Client, Metadata, type MetadataValue, type ServiceError } from "@grpc/grpc-js";
import { loadSync, type MethodDefinition, type PackageDefinition } from "@grpc/proto-loader";

/** Message of proto-loader. */
// biome-ignore lint/suspicious/noExplicitAny: a client that knows the contract only when it runs has no types for it.
export type Loose = any;

/** Keeps the field names of the proto, and returns 64-bit integers as strings. */
export const loaderOptions = { keepCase: true, longs: String, enums: String, oneofs: true } as const;

export function loadContract(): PackageDefinition {
  const root = fileURLToPath(new URL("../../../proto", import.meta.url));
  return loadSync(["pilothouse/v1/session.proto", "pilothouse/v1/profile.proto"], {
    includeDirs: [root],
    ...loaderOptions,
  });
}

export function methodOf(definition: PackageDefinition, service: string, name: string): MethodDefinition<Loose, Loose> {
  const methods = definition[service];
  const method = methods && !("format" in methods) ? methods[name] : undefined;
  if (!method || !("path" in method)) throw new Error(`${service} has no method ${name}`);
  return method;
}

export function bearer(key: string): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  return metadata;
}

export interface UnaryOutcome {
  readonly answer?: Loose;
  readonly error?: ServiceError;
  /** Response headers. */
  readonly headers: Record<string, MetadataValue>;
}

/** Calls a unary method. Resolves with the error if the call fails. */
export function unary(
  client: Client,
  { path, requestSerialize, responseDeserialize }: MethodDefinition<Loose, Loose>,
  request: Loose,
  metadata: Metadata,
): Promise<UnaryOutcome> {
  return new Promise((resolve) => {
    let headers: Record<string, MetadataValue> = {};
    const deadline = Date.now() + 20_000;
    client
      .makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, { deadline }, (error, answer) =>
        resolve(error ? { error, headers } : { answer, headers }),
      )
      .on("metadata", (received) => {
        headers = received.getMap();
      });
  });
}
