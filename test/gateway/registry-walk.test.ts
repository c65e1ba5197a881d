import { expect, test } from "vitest";
import { methodsAt, oneOfEachKind, walkedMethods } from "./walk/methods.ts";
import { walkRegistry } from "./walk/registry-walk.ts";
import { rows } from "./walk/rows.ts";

test("every method has a row with its requirements", () => {
  expect(Object.keys(rows).toSorted()).toEqual(walkedMethods.map(({ name }) => name).toSorted());
});

const atRest = new Set(methodsAt("REST"));

// All methods over REST, one of each kind over the other protocols, and methods without a REST route.
// registry-walk.long.test.ts walks all.
walkRegistry((transport) => {
  const methods = methodsAt(transport);
  const sample = new Set(oneOfEachKind(methods));
  return transport === "REST" ? methods : methods.filter((method) => sample.has(method) || !atRest.has(method));
});
