import { createContext, runInContext } from "node:vm";
import { expect, test } from "vitest";
import { callPage, mainFrame } from "../../workers/driver/elements/page-world.ts";
import { CommandProgress } from "../../workers/pages/progress.ts";
import { type PageCall, scriptPage } from "../support/scripted-page.ts";

class Document {
  get title(): string {
    return "Shop";
  }
}

test("calls that enter a new document at the same time share one copy of the script", async () => {
  const world = createContext({ Document, document: new Document() });
  const { sessionPage } = scriptPage({
    "Page.createIsolatedWorld": () => ({ executionContextId: 1 }),
    "Runtime.callFunctionOn": ({ functionDeclaration, arguments: values }: PageCall) => ({
      result: { value: runInContext(`(${functionDeclaration})`, world)(...values.map(({ value }) => value)) },
    }),
  });
  const scene = { sessionPage, progress: new CommandProgress(600_000, []) };
  const title = () => callPage(scene, mainFrame(scene), "title");
  expect(await Promise.all([title(), title()])).toEqual(["Shop", "Shop"]);
  expect(Object.keys(world)).toHaveLength(3);
});
