import { expect, test } from "vitest";
import { goThrough } from "./kill-scene.ts";

test("8,000 deliveries to 100 endpoints outlive eight kills: none is lost, stuck or out of order", async () => {
  const figures = await goThrough({ accounts: 10, endpoints: 10, events: 80, kills: 8 });
  console.log(figures);
  expect(figures).toContain("8000 deliveries");
}, 900_000);
