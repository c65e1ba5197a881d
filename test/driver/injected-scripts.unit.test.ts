import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { checkScript } from "../../src/gen/injected/check-script.ts";
import { contentScript } from "../../src/gen/injected/content-script.ts";
import { controlScript } from "../../src/gen/injected/control-script.ts";
import { documentScript } from "../../src/gen/injected/document-script.ts";
import { pageScript } from "../../src/gen/injected/page-script.ts";
import { selectionScript } from "../../src/gen/injected/selection-script.ts";

test.each([
  ["page", pageScript, "waitForText"],
  ["document", documentScript, "readDocument"],
  ["content", contentScript, "documentContent"],
  ["check", checkScript, "describeDocument"],
  ["control", controlScript, "findOpen"],
  ["selection", selectionScript, "selectedText"],
])("the %s script is an expression that leaves the global scope unchanged", (_name, script, member) => {
  const context = {};
  expect(runInNewContext(`typeof ${script}.${member}`, context)).toBe("function");
  expect(Object.getOwnPropertyNames(context)).toEqual([]);
});
