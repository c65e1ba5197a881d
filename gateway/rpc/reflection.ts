import { createRequire } from "node:module";
import { type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import type Reflection from "@grpc/reflection";
import type { ReflectionService } from "@grpc/reflection";
import { file_google_rpc_error_details } from "../../src/gen/google/rpc/error_details_pb.ts";
import { file_google_rpc_status } from "../../src/gen/google/rpc/status_pb.ts";
import type { ServedService } from "../../src/kernel/registry.ts";
import { healthService, loadHealthCheck } from "./health.ts";
import { addLazily, servicesOf } from "./lazy-services.ts";

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

/**
 * Adds gRPC server reflection (v1 and v1alpha) for the served services, the health service and the error details, so
 * that clients based on reflection can show errors. The first call loads the package and indexes the files, which takes
 * 0.2 s.
 */
export function addReflection(server: Server, services: readonly ServedService[]): void {
  const methods = ["v1", "v1alpha"].map((version) => ({
    path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
    requestStream: true,
    responseStream: true,
  }));
  addLazily(server, methods, () => {
    const { ReflectionService }: typeof Reflection = createRequire(import.meta.url)("@grpc/reflection");
    const names = [...services.map(({ service }) => service.typeName), healthService];
    return servicesOf(new ReflectionService(describe(services), { services: names }));
  });
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
  // From a package definition, the library reads only the files of its types.
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
  const { requestType } = loadHealthCheck().service.Check as unknown as PackageDefinitionMethod;
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
