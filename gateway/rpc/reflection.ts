import { type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { handleBidiStreamingCall, Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { service as healthService } from "grpc-health-check";
import { file_google_rpc_error_details } from "../../src/gen/google/rpc/error_details_pb.ts";
import { file_google_rpc_status } from "../../src/gen/google/rpc/status_pb.ts";
import type { ServedService } from "../../src/kernel/registry.ts";

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

const health = "grpc.health.v1.Health";

/** A service definition with its handlers. */
type AddedService = Parameters<Server["addService"]>;

/**
 * Adds gRPC server reflection (v1 and v1alpha) for the served services, the health service and the error details, so
 * that clients based on reflection can show errors. The first call indexes the files, which takes 0.1 s.
 */
export function addReflection(server: Server, services: readonly ServedService[]): void {
  let indexed: readonly AddedService[] | undefined;
  for (const [index, [definition, handlers]] of reflectionOf({}, []).entries()) {
    const lazily = Object.keys(handlers).map((name) => {
      const handle: handleBidiStreamingCall<unknown, unknown> = (call) => {
        indexed ??= reflectionOf(describe(services), [...services.map(({ service }) => service.typeName), health]);
        const handler = indexed[index]?.[1][name] as typeof handle | undefined;
        handler?.(call);
      };
      return [name, handle] as const;
    });
    server.addService(definition, Object.fromEntries(lazily));
  }
}

/** Returns the reflection services of both versions for the named services of a package definition. */
function reflectionOf(definition: PackageDefinition, services: string[]): readonly AddedService[] {
  const added: AddedService[] = [];
  new ReflectionService(definition, { services }).addToServer({ addService: (...service) => void added.push(service) });
  return added;
}

/** Returns the files of services, of error details and of the health service. */
function describe(services: readonly ServedService[]): PackageDefinition {
  const files = new Set<DescFile>();
  for (const file of [file_google_rpc_status, file_google_rpc_error_details]) {
    collect(file, files);
  }
  for (const { service } of services) {
    collect(service.file, files);
  }
  const ours = [...files].map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)));
  // The library reads only the files of the types from a package definition.
  return {
    files: {
      format: "Protocol Buffer 3 DescriptorProto",
      type: {},
      fileDescriptorProtos: [...ours, ...healthFiles()],
    },
  };
}

/** Returns the descriptors of grpc-health-check, which loads its own proto. */
function healthFiles(): readonly Buffer[] {
  const { requestType } = healthService.Check as unknown as PackageDefinitionMethod;
  return requestType.fileDescriptorProtos;
}

interface PackageDefinitionMethod {
  readonly requestType: { readonly fileDescriptorProtos: readonly Buffer[] };
}

function collect(file: DescFile, files: Set<DescFile>): void {
  if (!files.has(file)) {
    for (const dependency of file.dependencies) {
      collect(dependency, files);
    }
    files.add(file);
  }
}
