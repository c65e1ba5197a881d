import { expect, test } from "vitest";
import { ControlRound } from "../../workers/fleet/control-round.ts";

async function targets(round: ControlRound, count: number): Promise<string[]> {
  const found: string[] = [];
  for (let turn = 0; turn < count; turn += 1) found.push((await round.next()).target);
  return found;
}

test("returns the addresses of a list in rotation", async () => {
  const round = new ControlRound(["10.0.0.1:8083", "[::1]:8083", "unix:/run/fleet.sock"]);
  const once = ["10.0.0.1:8083", "[::1]:8083", "unix:/run/fleet.sock"];
  expect(await targets(round, 6)).toEqual([...once, ...once]);
});

test("returns the addresses of a name in rotation and resolves it again each round", async () => {
  const answers = [["10.0.0.1", "fd00::1"], ["10.0.0.2"]];
  const round = new ControlRound(["gateways.test:8083"], async () => answers.shift() ?? []);
  expect(await round.next()).toEqual({ target: "10.0.0.1:8083", name: "gateways.test" });
  expect(await targets(round, 2)).toEqual(["[fd00::1]:8083", "10.0.0.2:8083"]);
  await expect(round.next()).rejects.toThrow("no control process found for gateways.test:8083");
});

test("resolves loopback by its name", async () => {
  const [target] = await targets(new ControlRound(["localhost:8083"]), 1);
  expect(["127.0.0.1:8083", "[::1]:8083"]).toContain(target);
});

test("skips a name that is not found, or not in time", async () => {
  const find = async (name: string): Promise<string[]> => {
    if (name === "silent.test") await new Promise(() => undefined);
    throw new Error("ENOTFOUND");
  };
  const round = new ControlRound(["lost.test:1", "silent.test:1", "10.0.0.1:8083"], find);
  expect(await targets(round, 1)).toEqual(["10.0.0.1:8083"]);
});
