import { describe, expect, test } from "vitest";
import { readLevelDb } from "../../src/profiles/storage-state/leveldb-reader.ts";
import { writeLevelDb } from "../../src/profiles/storage-state/leveldb-writer.ts";
import { readLocalStorage, writeLocalStorage } from "../../src/profiles/storage-state/local-storage.ts";
import { decompressSnappy } from "../../src/profiles/storage-state/snappy.ts";
import { readTarDirectory, writeTar } from "../../src/profiles/storage-state/tar.ts";

const entries = (count: number, length: number) =>
  Array.from(
    { length: count },
    (_, index) => [Buffer.from(`key ${index}`), Buffer.alloc(length, `${index} `)] as const,
  );

test.each([
  [0, 0],
  [1, 0],
  [3, 32_768 - 7],
  [2_500, 100],
  [5, 100_000],
])("reads %d values of %d bytes as they were written", (count, length) => {
  const written = entries(count, length);
  const read = readLevelDb(writeLevelDb(written));
  expect(read.size).toBe(count);
  for (const [key, value] of written) expect(read.get(key.toString())?.equals(value)).toBe(true);
});

test("reads localStorage as it was written", () => {
  const origins = [
    {
      origin: "https://a.example",
      localStorage: [
        { name: "é", value: "世界" },
        { name: "", value: "\0\n" },
      ],
    },
    { origin: "http://127.0.0.1:8080", localStorage: [{ name: "a", value: "" }] },
  ];
  expect(readLocalStorage(writeLocalStorage(origins, Date.now()))).toEqual(origins);
});

describe("damaged databases", () => {
  const files = writeLocalStorage([{ origin: "https://a.example", localStorage: [{ name: "a", value: "b" }] }], 0);

  test("a missing manifest is an error, and a missing database is empty", () => {
    expect(() => readLevelDb(new Map([...files].filter(([name]) => name === "CURRENT")))).toThrow(
      /expected the manifest/,
    );
    expect(readLocalStorage(new Map())).toEqual([]);
  });

  test("a log that is cut anywhere is read up to the cut", () => {
    const log = files.get("000002.log") ?? Buffer.alloc(0);
    for (let length = 0; length < log.length; length += 1)
      expect(() => readLevelDb(new Map([...files, ["000002.log", log.subarray(0, length)]]))).not.toThrow();
  });

  test("changed bytes are read or refused, in bounded time and memory", () => {
    let seed = 1;
    const next = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let round = 0; round < 2_000; round += 1) {
      const damaged = new Map([...files].map(([name, content]) => [name, Buffer.from(content)] as const));
      const names = [...damaged.keys()];
      const content = damaged.get(names[next(names.length)] ?? "") ?? Buffer.alloc(1);
      content[next(content.length)] = next(256);
      try {
        readLevelDb(damaged);
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
    }
  });
});

describe("snappy", () => {
  test("copies overlapping bytes", () => {
    // Length 10, the literal "ab", and 8 bytes from 2 bytes before.
    expect(decompressSnappy(Buffer.from([10, 1 << 2, 0x61, 0x62, (4 << 2) | 1, 2]), 100).toString()).toBe("ababababab");
  });

  test.each([
    ["too long", [0xff, 0xff, 0x7f]],
    ["a reference before the start", [4, 1, 1]],
    ["a literal beyond the end", [4, 60 << 2, 200]],
    ["less than announced", [4, 0, 0x61]],
  ])("refuses data that is %s", (_name, bytes) => {
    expect(() => decompressSnappy(Buffer.from(bytes), 1_000)).toThrow();
  });
});

test("reads a directory of a tar archive in any chunks", async () => {
  const files = new Map([
    ["a/b/one", Buffer.alloc(1_000, "1")],
    ["a/c", Buffer.from("skipped")],
    ["a/b/two", Buffer.alloc(0)],
  ]);
  const archive = writeTar(files);
  for (const size of [1, 511, 512, 100_000]) {
    const chunks = async function* () {
      for (let at = 0; at < archive.length; at += size) yield archive.subarray(at, at + size);
    };
    const read = await readTarDirectory(chunks(), "a/b/");
    expect([...read].map(([name, content]) => [name, content.length])).toEqual([
      ["one", 1_000],
      ["two", 0],
    ]);
  }
});

test("limits the files of a tar archive to 128 MiB, also after a negative size", async () => {
  const archive = writeTar(
    new Map([
      ["a/one", Buffer.alloc(0)],
      ["a/two", Buffer.alloc(0)],
    ]),
  );
  archive.write("-7777777777", 124, "latin1");
  archive.write((129 * 2 ** 20).toString(8).padStart(11, "0"), 512 + 124, "latin1");
  const chunks = async function* () {
    yield archive;
  };
  await expect(readTarDirectory(chunks(), "a/")).rejects.toThrow("too much localStorage");
});
