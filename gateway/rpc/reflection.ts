import { type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { service as healthService } from "grpc-health-check";
import { file_google_rpc_error_details } from "../../src/gen/google/rpc/error_details_pb.ts";
import { file_google_rpc_status } from "../../src/gen/google/rpc/status_pb.ts";
import type { ServedService } from "../../src/kernel/registry.ts";

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

const health = "grpc.health.v1.Health";

/**
 * Adds gRPC server reflection (v1 and v1alpha) for the served services, the health service and the error details, so
 * that clients based on reflection can show errors.
 */
export function addReflection(server: Server, services: readonly ServedService[]): void {
  const files = new Set<DescFile>();
  for (const file of [file_google_rpc_status, file_google_rpc_error_details]) {
    collect(file, files);
  }
  for (const { service } of services) {
    collect(service.file, files);
  }
  const ours = [...files].map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)));
  // The library reads only the files of the types from a package definition.
  const definition: PackageDefinition = {
    files: {
      format: "Protocol Buffer 3 DescriptorProto",
      type: {},
      fileDescriptorProtos: [...ours, ...healthFiles()],
    },
  };
  const names = [...services.map(({ service }) => service.typeName), health];
  new ReflectionService(definition, { services: names }).addToServer(server);
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
