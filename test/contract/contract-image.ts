import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  createFileRegistry,
  type DescEnum,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const root = join(import.meta.dirname, "../..");

/** Services, messages and enums of one package, including comments. */
export interface Contract {
  readonly files: readonly DescFile[];
  readonly services: readonly DescService[];
  readonly methods: readonly DescMethod[];
  readonly messages: readonly DescMessage[];
  readonly enums: readonly DescEnum[];
}

/** Builds a directory of protos. Returns a function that returns the contract of a package. */
export async function buildContracts(directory = join(root, "proto")): Promise<(packageName: string) => Contract> {
  const temporary = await mkdtemp(join(tmpdir(), "pilothouse-image-"));
  try {
    const image = join(temporary, "image.binpb");
    await promisify(execFile)(join(root, "node_modules/.bin/buf"), ["build", directory, "--output", image]);
    const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, await readFile(image)));
    const files = [...registry.files];
    return (packageName) => {
      const own = files.filter((file) => file.proto.package === packageName);
      const messages = own.flatMap((file) => file.messages).flatMap(withNested);
      const services = own.flatMap((file) => file.services);
      return {
        files: own,
        services,
        methods: services.flatMap((service) => service.methods),
        messages,
        enums: [...own.flatMap((file) => file.enums), ...messages.flatMap((message) => message.nestedEnums)],
      };
    };
  } finally {
    await rm(temporary, { recursive: true });
  }
}

/** Returns a message and all messages declared inside, except map entries. */
function withNested(message: DescMessage): DescMessage[] {
  return [message, ...message.nestedMessages.flatMap(withNested)];
}
