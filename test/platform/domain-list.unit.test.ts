import { expect, test } from "vitest";
import { intersectDomains } from "../../src/platform/outgoing/domain-list.ts";

test.each([
  [[], [], []],
  [["a.example"], [], ["a.example"]],
  [[], ["*.a.example"], ["*.a.example"]],
  [["a.example", "b.example"], ["b.example", "c.example"], ["b.example"]],
  [["*.example"], ["a.example", "a.test"], ["a.example"]],
  [["*.a.example"], ["*.example"], ["*.a.example"]],
  [
    ["*.a.example", "b.c.example"],
    ["*.c.example", "x.a.example"],
    ["b.c.example", "x.a.example"],
  ],
  [["a.example"], ["*.a.example"], undefined],
  [["a.example"], ["b.example"], undefined],
])("the intersection of %j and %j is %j", (one, other, both) => {
  expect(intersectDomains(one, other)).toEqual(both);
  expect(new Set(intersectDomains(other, one))).toEqual(new Set(both));
});
