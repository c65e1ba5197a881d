import { expect, test } from "vitest";
import { goThrough } from "./kill-scene.ts";

test("deliveries that a killed gateway had begun are made by another, in order, and nothing else is repeated", async () => {
  await expect(goThrough({ accounts: 2, endpoints: 4, events: 25, kills: 1 })).resolves.toContain("200 deliveries");
}, 240_000);
