import { expect, it } from "vitest";
import { allServices, builtServices } from "../../tools/described-services.ts";

it("should have a feature that serves it for every service", () => {
  const built = new Set(builtServices.map(({ service }) => service.typeName));
  expect(allServices.map(({ service }) => service.typeName).filter((name) => !built.has(name))).toEqual([]);
});
