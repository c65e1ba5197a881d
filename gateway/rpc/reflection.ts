import { type DescFile, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import type { ServedService } from "../../src/registry.ts";

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

/** Adds gRPC server reflection (v1 and v1alpha) over the descriptors of the served services. */
export function addReflection(server: Server, services: readonly ServedService[]): void {
  const files = new Set<DescFile>();
  for (const { service } of services) {
    collect(service.file, files);
  }
  const fileDescriptorProtos = [...files].map((file) => Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)));
  // The library reads nothing of a package definition but the files of its types.
  const definition: PackageDefinition = {
    files: { format: "Protocol Buffer 3 DescriptorProto", type: {}, fileDescriptorProtos },
  };
  new ReflectionService(definition, { services: services.map(({ service }) => service.typeName) }).addToServer(server);
}

function collect(file: DescFile, files: Set<DescFile>): void {
  if (!files.has(file)) {
    for (const dependency of file.dependencies) {
      collect(dependency, files);
    }
    files.add(file);
  }
}
