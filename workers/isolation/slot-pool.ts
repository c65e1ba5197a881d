import { setTimeout as delay } from "node:timers/promises";
import type { BrowserPaths } from "../../src/platform/browsers/browser-paths.ts";
import type { Isolation } from "../../src/platform/isolation.ts";
import { type AddressRules, makeAddressRules } from "../../src/platform/outgoing/address-rules.ts";
import { ownAddresses, type Resolve } from "../../src/platform/outgoing/target-resolution.ts";
import type { Log } from "../base/log.ts";
import { EgressRelay } from "../egress/egress-relay.ts";
import type { MediaServer } from "../egress/media-server.ts";
import { type EgressGuard, limitLookups } from "../egress/resolver.ts";
import type { EgressBytes } from "../egress/socket-tally.ts";
import { type ChromiumSandbox, confineCommand, probeConfinement, probeDirectory, probeSandbox } from "./confinement.ts";
import { ConfinementError } from "./confinement-error.ts";
import { createNamespace, type Namespace } from "./namespace.ts";
import { findScratch } from "./scratch.ts";
import type { Slot } from "./slot.ts";
import { acquireBlock, makeSlotDirectories, type RecoverProfile, type SlotBlock } from "./slot-block.ts";
import { SlotHost } from "./slot-host.ts";
import { blockSize, findUidBase } from "./uid-range.ts";

/**
 * Number of free slots that are prepared for the next sessions. Creating a namespace takes 40 ms of CPU, so slots that
 * are never used have none.
 */
const preparedAhead = 2;

/** Milliseconds before retrying to clear a slot with remaining processes or files. */
const clearAgainMs = 5_000;

export interface SlotPoolOptions {
  /** Maximum number of concurrent sessions, 1 to 256. */
  size: number;
  /** Browser binaries, readable by every slot's uid. */
  executables: BrowserPaths;
  log: Log;
  /** Private networks and targets that the pages of all sessions may reach (`EGRESS_ALLOW`). */
  allow?: readonly string[];
  /** Whether refusal pages show the setting with which the operator allows an address. */
  showRemedy?: boolean;
  /** "flags" disables network namespaces, which are otherwise required on Linux. */
  isolation?: Isolation;
  /** "off" disables Chromium's sandbox, which is otherwise required. */
  browserSandbox?: "on" | "off";
  /** Saves profiles of dead workers' sessions before their slots are cleared. */
  recoverProfile?: RecoverProfile;
  /** Directory for browser files of running sessions. Default: `findScratch`. */
  scratch?: string | undefined;
  /** Directory on disk for uploads and downloads. Default: the directory for browser files. */
  storage?: string | undefined;
  /** Name resolver. Default: the system's. */
  resolve?: Resolve;
  /** Media server that pages must not reach. */
  mediaServer?: MediaServer | undefined;
}

/** Egress of all slots since the worker started. */
export interface EgressTotals extends EgressBytes {
  refused: number;
}

/** The isolation slots of a worker. Each slot serves one browser at a time. */
export class SlotPool {
  readonly size: number;
  readonly #options: SlotPoolOptions;
  readonly #rules: AddressRules;
  readonly #free: SlotHost[] = [];
  readonly #leased = new Set<Slot>();
  readonly #released: EgressTotals = { sent: 0, received: 0, refused: 0 };
  readonly #stopping = new AbortController();
  readonly isolation: Isolation;
  #sandbox: ChromiumSandbox = "none";
  #hosts: readonly SlotHost[] = [];
  #block: SlotBlock | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: SlotPoolOptions) {
    if (!(options.size >= 1 && options.size <= blockSize)) throw new Error(`a worker has 1 to ${blockSize} slots`);
    this.#options = options;
    this.size = options.size;
    this.isolation = options.isolation ?? (process.platform === "linux" ? "namespace" : "flags");
    this.#rules = makeAddressRules({ allow: options.allow ?? [], ownAddresses: ownAddresses() });
  }

  get free(): number {
    return this.#free.length;
  }

  /** Egress guard for checking a proxy before its session exists. */
  get guard(): EgressGuard {
    return { rules: this.#rules, resolve: limitLookups(this.#options.resolve) };
  }

  get egress(): EgressTotals {
    const totals = { ...this.#released };
    for (const { relay } of this.#leased) addEgress(totals, relay);
    return totals;
  }

  /** Chromium's sandbox type, known after `start`. */
  get sandbox(): ChromiumSandbox {
    return this.#sandbox;
  }

  /**
   * Locks a slot block and clears leftovers of dead workers. Rejects if no block is free or browsers cannot be
   * confined.
   */
  async start(): Promise<void> {
    if (this.#block) return;
    const uidBase = findUidBase();
    const { scratch = findScratch(uidBase !== undefined) } = this.#options;
    this.#block = await acquireBlock({ ...this.#options, uidBase, scratch });
    await this.#probe(this.#block);
    this.#hosts = this.#makeHosts(this.#block);
    this.#free.push(...this.#hosts);
    this.#prepareAhead();
  }

  /** Kills every browser, removes all files of the slots and releases the block. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Returns a slot for one browser, or undefined if none is free or the pool is stopping. */
  acquire(): Slot | undefined {
    const host = this.#stopping.signal.aborted ? undefined : this.#free.shift();
    if (!host) return undefined;
    const slot = this.#lease(host);
    this.#leased.add(slot);
    this.#prepareAhead();
    return slot;
  }

  #lease(host: SlotHost): Slot {
    const relay = this.#makeRelay();
    host.attach(relay);
    let released: Promise<void> | undefined;
    let isKilled = false;
    // Whether a kill was complete, so that `release` need not kill again (40 ms of CPU).
    let isEmpty = false;
    const ready = host.prepare();
    // The launch awaits `ready`. Without this handler, a rejection would crash the worker if no launch follows.
    ready.catch(() => undefined);
    const slot: Slot = {
      index: host.index,
      uid: host.uid,
      directory: host.directory,
      storage: host.storage,
      relay,
      isolation: this.isolation,
      sandbox: this.#sandbox,
      executables: this.#options.executables,
      ready,
      get isKilled() {
        return isKilled;
      },
      killProcesses: async () => {
        isKilled = true;
        // After the release, another session may use the slot, so nothing is killed.
        if (released) await released;
        else isEmpty = await host.kill();
      },
      release: () => {
        isKilled = true;
        released ??= this.#release(slot, host, isEmpty);
        return released;
      },
    };
    return slot;
  }

  #makeRelay(): EgressRelay {
    const { log, showRemedy, resolve, mediaServer } = this.#options;
    return new EgressRelay({
      rules: this.#rules,
      log,
      ...(showRemedy === undefined ? {} : { showRemedy }),
      ...(resolve === undefined ? {} : { resolve }),
      ...(mediaServer && { mediaServer }),
    });
  }

  async #release(slot: Slot, host: SlotHost, isEmpty: boolean): Promise<void> {
    await slot.ready.catch(() => undefined);
    host.attach(undefined);
    slot.relay.close();
    while (!(await this.#clear(host, isEmpty))) {
      if (this.#stopping.signal.aborted) break;
      await delay(clearAgainMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
    this.#leased.delete(slot);
    addEgress(this.#released, slot.relay);
    if (this.#stopping.signal.aborted) return;
    // This slot is acquired next, because it has a namespace.
    this.#free.unshift(host);
    this.#prepareAhead();
  }

  async #clear(host: SlotHost, isEmpty = false): Promise<boolean> {
    try {
      if (!isEmpty && !(await host.kill())) return false;
      host.clear();
      return true;
    } catch (error) {
      this.#options.log.error({ slot: host.index, err: error }, "failed to clear a slot");
      return false;
    }
  }

  /** Prepares the next slots. A session can acquire a slot meanwhile: its `ready` awaits the same promise. */
  #prepareAhead(): void {
    for (const host of this.#free.slice(0, preparedAhead)) {
      host.prepare().catch((error: unknown) => {
        this.#options.log.error({ slot: host.index, err: error }, "failed to prepare a slot");
      });
    }
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#leased].map((slot) => slot.release()));
    for (const host of this.#hosts) {
      await host.close();
      await this.#clear(host);
    }
    this.#free.length = 0;
    this.#block?.release();
  }

  /** Probes confinement, sandbox and directories on the first slot. The result holds for all slots. */
  async #probe(block: SlotBlock): Promise<void> {
    const { executables, browserSandbox = "on" } = this.#options;
    const uid = block.uidOf(0);
    const namespace = this.isolation === "namespace" ? await probeNamespace(uid !== undefined) : undefined;
    try {
      const confine = confineCommand(namespace?.enter ?? [], uid, "namespaces");
      probeConfinement(confine);
      if (browserSandbox === "on") this.#sandbox = probeSandbox(confine, uid, Object.values(executables));
      const directories = { directory: block.directoryOf(0), storage: block.storageOf(0), uid };
      makeSlotDirectories(directories);
      for (const path of [directories.directory, directories.storage]) probeDirectory(confine, path);
    } finally {
      namespace?.close();
    }
  }

  #makeHosts(block: SlotBlock): SlotHost[] {
    const options = { block, isolation: this.isolation, sandbox: this.#sandbox, log: this.#options.log };
    return Array.from({ length: this.size }, (_, index) => new SlotHost(index, options));
  }
}

async function probeNamespace(isRoot: boolean): Promise<Namespace> {
  try {
    return await createNamespace(isRoot);
  } catch (error) {
    const errorOutput = error instanceof Error ? error.message : String(error);
    const what = "cannot create a network namespace";
    throw new ConfinementError({ what, errorOutput, isRoot, optOut: "ISOLATION=flags" });
  }
}

function addEgress(totals: EgressTotals, { bytes, refused }: EgressRelay): void {
  totals.sent += bytes.sent;
  totals.received += bytes.received;
  totals.refused += refused;
}
