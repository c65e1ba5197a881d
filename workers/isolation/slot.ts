import type { BrowserPaths } from "../../src/platform/browsers/browser-paths.ts";
import type { Isolation } from "../../src/platform/isolation.ts";
import type { Relay } from "../egress/relay.ts";
import type { Sandbox } from "./confinement.ts";

/** A place for one session's browser: held from `acquire` to the end of `release`. */
export interface Slot {
  readonly index: number;
  /** The uid of everything in the slot, where the worker is root. */
  readonly uid: number | undefined;
  /** Mode 0700 and the slot's own; made anew for every session and removed after it. */
  readonly directory: string;
  /** The like for files of the session's user and large captures: on disk, where `directory` may be in memory. */
  readonly storage: string;
  /** The session's only way out. */
  readonly relay: Relay;
  readonly isolation: Isolation;
  readonly sandbox: Sandbox;
  /** The real binaries of the runtimes that are installed. */
  readonly executables: BrowserPaths;
  /** Resolves when a browser can be launched; rejects where the slot cannot be made. */
  readonly ready: Promise<SlotEntrance>;
  /** Whether its processes were killed by us, be it by `killProcesses` or by `release`. */
  readonly isKilled: boolean;
  /** Kills every process of the slot and resolves when none is left, at the latest after 10 s. */
  killProcesses(): Promise<void>;
  /** Ends all that is left of the session; only when it resolves is the slot free for another. */
  release(): Promise<void>;
}

/** How a browser gets into its slot. */
export interface SlotEntrance {
  /** The command that turns a process into one of the slot's. */
  readonly confine: readonly string[];
  /** Where the relay listens on the loopback that the browser sees. */
  readonly relayPort: number;
  /** Where the launch notes its process. */
  readonly record: string;
}
