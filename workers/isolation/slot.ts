import type { BrowserPaths } from "../../src/platform/browsers/browser-paths.ts";
import type { Isolation } from "../../src/platform/isolation.ts";
import type { EgressRelay } from "../egress/egress-relay.ts";
import type { ChromiumSandbox } from "./confinement.ts";

/** Isolation slot of one browser, held from `SlotPool.acquire` until `release` resolves. */
export interface Slot {
  readonly index: number;
  /** Uid of the slot's processes and files. Undefined if the worker cannot assign uids. */
  readonly uid: number | undefined;
  /** Private directory of the browser's files, recreated for every browser and removed afterwards. May be in memory. */
  readonly directory: string;
  /** Private directory on disk for uploads, downloads and large captures. */
  readonly storage: string;
  /** Relay that receives all traffic of the browser. */
  readonly relay: EgressRelay;
  readonly isolation: Isolation;
  readonly sandbox: ChromiumSandbox;
  /** Binaries of the installed runtimes. */
  readonly executables: BrowserPaths;
  /** Resolves when a browser can be launched. Rejects if the slot cannot be prepared. */
  readonly ready: Promise<SlotEntrance>;
  /** Whether `killProcesses` or `release` was called. */
  readonly isKilled: boolean;
  /** Kills every process of the slot. Resolves when no process is left, or 10 s after SIGKILL. */
  killProcesses(): Promise<void>;
  /**
   * Kills the processes, removes the files and returns the slot to the pool. Retries until this succeeds or the pool
   * stops.
   */
  release(): Promise<void>;
}

/** Parameters for starting a browser in its slot. */
export interface SlotEntrance {
  /** Command that runs a program inside the slot. Append the program and its arguments. */
  readonly confine: readonly string[];
  /** Port of the relay on the browser's loopback interface. */
  readonly relayPort: number;
  readonly record: string;
}
