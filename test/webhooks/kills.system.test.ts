import { expect, test } from "vitest";
import { goThrough } from "./kill-scene.ts";

test("deliveries that a killed gateway had begun are made by another, in order, and nothing else is repeated", async () => {
  await expect(goThrough({ accounts: 4, endpoints: 5, events: 40, kills: 2 })).resolves.toContain("800 deliveries");
}, 240_000);
