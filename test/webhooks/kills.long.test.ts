import { expect, test } from "vitest";
import { goThrough } from "./kill-scene.ts";

test("8,000 deliveries to 100 endpoints survive eight kills without loss, stalls or reordering", async () => {
  const figures = await goThrough({ accounts: 10, endpoints: 10, events: 80, kills: 8 });
  console.log(figures);
  expect(figures).toContain("8000 deliveries");
}, 900_000);
