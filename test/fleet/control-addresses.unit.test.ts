import { expect, test } from "vitest";
import { findControlProcesses } from "../../workers/fleet/control-addresses.ts";

const targets = async (...parameters: Parameters<typeof findControlProcesses>) =>
  (await findControlProcesses(...parameters)).map(({ target }) => target);

test("lists addresses as they are, and a name as all its addresses", async () => {
  const addresses = ["10.0.0.1:8083", "[::1]:8083", "unix:/run/fleet.sock"];
  expect(await targets(addresses)).toEqual(addresses);
  expect(await findControlProcesses(["control.test:8083"], async () => ["10.0.0.1", "fd00::1"])).toEqual([
    { target: "10.0.0.1:8083", name: "control.test" },
    { target: "[fd00::1]:8083", name: "control.test" },
  ]);
  await expect(findControlProcesses(["control.test:8083"], async () => [])).rejects.toThrow(
    "no control process found for control.test:8083",
  );
});

test("resolves loopback by its name", async () => {
  const [target] = await targets(["localhost:8083"]);
  expect(["127.0.0.1:8083", "[::1]:8083"]).toContain(target);
});

test("skips a name that is not found, or not in time", async () => {
  const find = async (name: string): Promise<string[]> => {
    if (name === "silent.test") await new Promise(() => undefined);
    throw new Error("ENOTFOUND");
  };
  expect(await targets(["lost.test:1", "silent.test:1", "10.0.0.1:8083"], find)).toEqual(["10.0.0.1:8083"]);
});
