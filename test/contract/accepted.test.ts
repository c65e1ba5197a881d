import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { allServices, builtServices } from "./described-services.ts";

it("should hold every service that is served in the accepted contract, and no other", () => {
  const image = readFileSync(new URL("../../proto/contract.binpb", import.meta.url));
  const files = [...createFileRegistry(fromBinary(FileDescriptorSetSchema, image)).files];
  const accepted = files.flatMap((file) => file.services).map((service) => service.typeName);
  expect(accepted.sort()).toEqual(builtServices.map(({ service }) => service.typeName).sort());
});

it("should have a feature that serves it for every service", () => {
  const built = new Set(builtServices.map(({ service }) => service.typeName));
  expect(allServices.map(({ service }) => service.typeName).filter((name) => !built.has(name))).toEqual([]);
});
