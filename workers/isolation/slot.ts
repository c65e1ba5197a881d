import type { BrowserPaths } from "../../src/platform/browsers/browser-paths.ts";
import type { Isolation } from "../../src/platform/isolation.ts";
import type { EgressRelay } from "../egress/egress-relay.ts";
import type { ChromiumSandbox } from "./confinement.ts";

/** Isolation slot for one session's browser, held from `acquire` to the end of `release`. */
export interface Slot {
  readonly index: number;
  /** Uid of the slot's processes and files, if the worker is root. */
  readonly uid: number | undefined;
  /** Private directory, recreated for every session and removed afterwards. May be in memory. */
  readonly directory: string;
  /** Private directory on disk for uploads, downloads and large captures. */
  readonly storage: string;
  /** The session's only egress. */
  readonly relay: EgressRelay;
  readonly isolation: Isolation;
  readonly sandbox: ChromiumSandbox;
  /** Binaries of the installed runtimes. */
  readonly executables: BrowserPaths;
  /** Resolves when a browser can be launched. Rejects if the slot cannot be prepared. */
  readonly ready: Promise<SlotEntrance>;
  /** Whether `killProcesses` or `release` was called. */
  readonly isKilled: boolean;
  /** Kills every process of the slot. Resolves when no process is left, or after 10 s. */
  killProcesses(): Promise<void>;
  /** Kills processes and removes files. The slot is free for another session once this resolves. */
  release(): Promise<void>;
}

/** Parameters for starting a browser in its slot. */
export interface SlotEntrance {
  /** Command that runs a program inside the slot. */
  readonly confine: readonly string[];
  /** Port of the relay on the browser's loopback interface. */
  readonly relayPort: number;
  readonly record: string;
}
