import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HostBlock, readBlockLists, readLine } from "../../workers/egress/block-lists.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "lists-"));
});
afterAll(() => rm(directory, { recursive: true }));

async function listOf(lines: readonly string[]): Promise<string> {
  const path = join(directory, `${Math.random()}.txt`);
  await writeFile(path, lines.join("\n"));
  return path;
}

test.each([
  ["ads.example", ["ads.example"]],
  ["0.0.0.0 ads.example www.ads.example # comment", ["ads.example", "www.ads.example"]],
  [":: ads.example", ["ads.example"]],
  ["||ads.example^", ["ads.example"]],
  ["||ads.example^$third-party", ["ads.example"]],
  ["||ADS.Example^", ["ads.example"]],
  ["||bücher.example^", ["xn--bcher-kva.example"]],
  ["127.0.0.1 localhost", []],
  ["127.0.0.1 localhost.localdomain", []],
  ["0.0.0.0 0.0.0.0", []],
  ["||ads.example/path^", []],
  ["||ads.example^$domain=shop.example", []],
  ["example.com##.banner", []],
  ["! comment", []],
  ["[Adblock Plus 2.0]", []],
  ["", []],
])("reads the hosts of the line %j", (line, hosts) => {
  expect(readLine(line).map(({ host }) => host)).toEqual(hosts);
});

test("blocks listed hosts with all subdomains, except exceptions", async () => {
  const path = await listOf(["||ads.example^", "||fair.example^", "@@||fair.example^"]);
  const lists = await readBlockLists([{ kind: "ads", path }]);
  const block = new HostBlock(["*.own.example"], ["ads"], lists);
  const reasons = ["ads.example", "a.b.ads.example", "notads.example", "fair.example", "x.own.example", "own.example"];
  expect(reasons.map((host) => block.reasonFor(host))).toEqual([
    "ads",
    "ads",
    undefined,
    undefined,
    "hosts",
    undefined,
  ]);
  expect(new HostBlock([], [], lists).reasonFor("ads.example")).toBeUndefined();
});

test("exceptions of a kind unblock their subdomains, whatever the order of its lists", async () => {
  const blocking = { kind: "ads", path: await listOf(["||example.com^", "||a.ok.example.com^"]) } as const;
  const excepting = { kind: "ads", path: await listOf(["@@||ok.example.com^"]) } as const;
  const other = { kind: "trackers", path: await listOf(["||ok.example.com^"]) } as const;
  for (const files of [
    [blocking, excepting, other],
    [other, excepting, blocking],
  ]) {
    const lists = await readBlockLists(files);
    const block = new HostBlock([], ["ads"], lists);
    const reasons = ["example.com", "b.example.com", "ok.example.com", "a.ok.example.com"];
    expect(reasons.map((host) => block.reasonFor(host))).toEqual(["ads", "ads", undefined, undefined]);
    expect(new HostBlock([], ["ads", "trackers"], lists).reasonFor("ok.example.com")).toBe("trackers");
  }
});

test("refuses a list without hosts or that cannot be read", async () => {
  const path = await listOf(["# nothing"]);
  await expect(readBlockLists([{ kind: "ads", path }])).rejects.toThrow(
    /BLOCK_LISTS names the list .*, which adds no host: expected lines/,
  );
  await expect(readBlockLists([{ kind: "ads", path: `${path}.gone` }])).rejects.toThrow(/cannot be read: .*ENOENT/);
});
