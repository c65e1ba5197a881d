import { Readable } from "node:stream";
import { parentPort, workerData } from "node:worker_threads";
import { createZstdDecompress, zstdCompressSync } from "node:zlib";
import { readManifest, writeManifest } from "../../platform/profile-format.ts";
import {
  type BrowserCookie,
  noState,
  readState,
  type StorageState,
  toBrowserCookie,
  toStateCookie,
} from "./browser-state.ts";
import { readLocalStorage, writeLocalStorage } from "./local-storage.ts";
import { longestState, type StateAnswer, type StateTask } from "./state-thread.ts";
import { readTarDirectory, writeTar } from "./tar.ts";

/** Directory of localStorage in the profiles of both runtimes. */
const directory = "Default/Local Storage/leveldb/";

/** Reads the storage state of a profile store. */
async function readStore(store: Uint8Array): Promise<StateAnswer> {
  const unpacked = Readable.from([store]).pipe(createZstdDecompress());
  const { manifest, files } = await readManifest<BrowserCookie>(unpacked);
  const origins = readLocalStorage(await readTarDirectory(files, directory));
  const state: StorageState = { cookies: manifest.cookies.map(toStateCookie), origins };
  const bytes = Buffer.from(JSON.stringify(state));
  if (bytes.length > longestState) return { refused: `the state is larger than ${longestState} bytes` };
  return { bytes };
}

/** Creates a profile store from a storage state. */
function writeStore(json: Uint8Array, now: number): StateAnswer {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
  } catch {
    return { faults: [noState] };
  }
  const result = readState(parsed);
  if ("faults" in result) return result;
  const { cookies, origins } = result.state;
  const files = [...writeLocalStorage(origins, now)].map(([name, content]) => [directory + name, content] as const);
  // `browserMajor` is 0, because any version of the browser can read these files.
  const manifest = { format: 1, engine: "chromium", browserMajor: 0, cookies: cookies.map(toBrowserCookie) } as const;
  return { bytes: zstdCompressSync(Buffer.concat([writeManifest(manifest), writeTar(new Map(files))])) };
}

async function run(task: StateTask): Promise<StateAnswer> {
  if (task.kind === "write") return writeStore(task.json, task.now);
  return readStore(task.store);
}

// Unchecked cast: only state-thread.ts starts this program.
parentPort?.postMessage(await run(workerData as StateTask));
