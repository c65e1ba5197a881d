import { expect, test } from "vitest";
import { goThrough } from "./kill-scene.ts";

test("another gateway repeats, in order, only the deliveries that a killed gateway had started", async () => {
  await expect(goThrough({ accounts: 2, endpoints: 4, events: 25, kills: 1 })).resolves.toContain("200 deliveries");
}, 240_000);
