import { addEndpoint } from "./endpoint.ts";
import { camel, pascal, type Tree } from "./tree.ts";

/** Adds a service for a noun such as `note`: proto file, folder of `src`, test, and an endpoint that returns a note. */
export function addService(tree: Tree, noun: string): void {
  if (!/^[a-z]+(_[a-z]+)*$/.test(noun))
    throw new Error(`expected a singular noun such as note or api_key, got ${noun}`);
  const name = pascal(noun);
  const plural = `${noun.replaceAll("_", "-")}s`;
  const proto = `proto/pilothouse/v1/${noun}.proto`;
  const folder = `src/${plural}`;
  if (tree.has(proto) || tree.has(folder)) throw new Error(`${proto} or ${folder} exists already`);
  tree.write(proto, protoText(name, plural));
  tree.write(`${folder}/service.ts`, implementationText(name, noun));
  tree.write(`${folder}/feature.ts`, featureText(name, noun, camel(plural)));
  const list = "src/app/features.ts";
  tree.write(list, `import { ${camel(plural)} } from "../${plural}/feature.ts";\n${tree.read(list)}`);
  tree.insertBefore(list, "\n];", `\n  ${camel(plural)},`);
  addEndpoint(tree, { name: `${name}Service.Get`, verb: "GET", path: `/v1/${plural}/{id}` });
  tree.write(`test/${plural}/${plural}.test.ts`, testText(plural));
  tree.steps.push(`${folder}: tables.ts and store.ts if it has rows (src/profiles is a complete example)`);
}

const protoText = (name: string, plural: string): string => `syntax = "proto3";

// TODO: describe ${plural} in one sentence.
package pilothouse.v1;

import "buf/validate/validate.proto";
import "google/api/annotations.proto";
import "pilothouse/v1/options.proto";

option csharp_namespace = "Pilothouse.V1";
option go_package = "pilothouse/v1;pilothousev1";
option java_multiple_files = true;
option java_outer_classname = "${name}Proto";
option java_package = "pilothouse.v1";

// TODO: describe the service.
service ${name}Service {
}
`;

const implementationText = (
  name: string,
  noun: string,
): string => `import type { ${name}Service } from "../gen/pilothouse/v1/${noun}_pb.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";

/** Creates the implementation of ${name}Service. */
export function create${name}Service(): ServiceImplementation<typeof ${name}Service> {
  return {
  };
}
`;

const featureText = (
  name: string,
  noun: string,
  feature: string,
): string => `import { ${name}Service } from "../gen/pilothouse/v1/${noun}_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { create${name}Service } from "./service.ts";

export const ${feature} = defineService({
  service: ${name}Service,
  create: () => ({ methods: create${name}Service() }),
});
`;

const testText = (plural: string): string => `import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestGateway, startTestGateway } from "../support/test-gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

test("get returns the resource of the id", async () => {
  const rest = gateway.as(await gateway.addAccount());
  expect((await rest("/v1/${plural}/first")).body).toEqual({ id: "first" });
});
`;
