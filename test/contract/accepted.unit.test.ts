import { expect, it } from "vitest";
import { allServices, builtServices } from "../../tools/described-services.ts";

it("every service is served by a feature", () => {
  const built = new Set(builtServices.map(({ service }) => service.typeName));
  expect(allServices.map(({ service }) => service.typeName).filter((name) => !built.has(name))).toEqual([]);
});
