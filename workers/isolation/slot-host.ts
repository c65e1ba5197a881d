import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import type { Isolation } from "../../src/platform/isolation.ts";
import type { Log } from "../base/log.ts";
import type { EgressRelay } from "../egress/egress-relay.ts";
import { type ChromiumSandbox, confineCommand } from "./confinement.ts";
import { readLaunchRecord } from "./launch-record.ts";
import { createNamespace, relayPort } from "./namespace.ts";
import { killProcesses, killUid, networkNamespaceOf, type ProcessEntry } from "./processes.ts";
import type { SlotEntrance } from "./slot.ts";
import {
  makeSlotDirectories,
  matchSlots,
  removeProfileRecord,
  removeSlotDirectories,
  type SlotBlock,
} from "./slot-block.ts";

/** Milliseconds after SIGKILL before remaining processes are logged. */
const killMs = 10_000;

export interface SlotHostOptions {
  block: SlotBlock;
  isolation: Isolation;
  sandbox: ChromiumSandbox;
  log: Log;
}

/** Listening socket that receives all traffic of a slot's browser. Created once and reused by successive sessions. */
interface EgressSocket {
  listener: Server;
  port: number;
  enter: readonly string[];
  inode: number | undefined;
  close(): void;
}

/** Persistent part of an isolation slot: uid, directory paths, network namespace and egress socket. */
export class SlotHost {
  readonly index: number;
  readonly uid: number | undefined;
  readonly directory: string;
  readonly storage: string;
  readonly #options: SlotHostOptions;
  readonly #record: string;
  #egressSocket: Promise<EgressSocket> | undefined;
  #inode: number | undefined;
  #relay: EgressRelay | undefined;
  #entrance: Promise<SlotEntrance> | undefined;

  constructor(index: number, options: SlotHostOptions) {
    this.index = index;
    this.#options = options;
    this.uid = options.block.uidOf(index);
    this.directory = options.block.directoryOf(index);
    this.storage = options.block.storageOf(index);
    this.#record = options.block.recordOf(index);
  }

  /**
   * Prepares the slot for a session: creates empty directories, and the namespace with its socket if missing. Until
   * `clear`, later calls return the same promise unless it has rejected.
   */
  prepare(): Promise<SlotEntrance> {
    this.#entrance ??= this.#prepare().catch((error: unknown) => {
      this.#entrance = undefined;
      throw error;
    });
    return this.#entrance;
  }

  /** Passes the browser's connections to a relay. Without a relay, connections are closed at once. */
  attach(relay: EgressRelay | undefined): void {
    this.#relay = relay;
  }

  /** Kills every process of the slot. Resolves to true if no process is left, or to false 10 s after SIGKILL. */
  async kill(): Promise<boolean> {
    const entrance = await this.#entrance?.catch(() => undefined);
    const wereKilled = entrance && this.uid !== undefined ? await killUid(entrance.confine) : false;
    const left = await killProcesses(this.#matchSlot(), killMs, wereKilled);
    if (left.length === 0) return true;
    const pids = left.map(({ pid }) => pid);
    this.#options.log.error({ slot: this.index, pids }, "failed to kill processes of a session within 10 s");
    return false;
  }

  /** Removes the directories of a session, and its launch and profile records. */
  clear(): void {
    this.#entrance = undefined;
    removeSlotDirectories(this);
    rmSync(this.#record, { force: true });
    removeProfileRecord(this.#record);
  }

  /** Releases the namespace and its socket. */
  async close(): Promise<void> {
    await this.#entrance?.catch(() => undefined);
    const egress = this.#egressSocket;
    this.#egressSocket = undefined;
    this.#inode = undefined;
    this.#entrance = undefined;
    (await egress?.catch(() => undefined))?.close();
  }

  async #prepare(): Promise<SlotEntrance> {
    this.#egressSocket ??= this.#createEgressSocket().catch((error: unknown) => {
      this.#egressSocket = undefined;
      throw error;
    });
    const egress = await this.#egressSocket;
    makeSlotDirectories(this);
    return {
      confine: confineCommand(egress.enter, this.uid, this.#options.sandbox),
      relayPort: egress.port,
      record: this.#record,
    };
  }

  async #createEgressSocket(): Promise<EgressSocket> {
    const egress =
      this.#options.isolation === "namespace"
        ? await createNamespaceSocket(this.uid !== undefined)
        : await createHostSocket();
    this.#inode = egress.inode;
    egress.listener.on("connection", (socket) => {
      if (this.#relay) this.#relay.accept(socket);
      else socket.destroy();
    });
    return egress;
  }

  /**
   * Matches the slot's processes, including a launcher that has not switched to the slot's uid. Without uids, also
   * matches every process of this user in the slot's network namespace. The namespace's inode is not reused while the
   * worker holds the namespace.
   */
  #matchSlot(): (entry: ProcessEntry) => boolean {
    const launched = readLaunchRecord(this.#record);
    const isOfSlot = matchSlots(this.#options.block, [this.index]);
    const isOurs = (entry: ProcessEntry) =>
      isOfSlot(entry) || (entry.pid === launched?.pid && entry.startedAt === launched.startedAt);
    const inode = this.#inode;
    if (this.uid !== undefined || inode === undefined) return isOurs;
    const own = process.getuid?.();
    return (entry) => isOurs(entry) || (entry.uid === own && networkNamespaceOf(entry.pid) === inode);
  }
}

async function createNamespaceSocket(isRoot: boolean): Promise<EgressSocket> {
  const { listener, enter, inode, close } = await createNamespace(isRoot);
  return { listener, enter, inode, close, port: relayPort };
}

async function createHostSocket(): Promise<EgressSocket> {
  const listener = createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("expected the relay's socket to have a port");
  return { listener, port: address.port, enter: [], inode: undefined, close: () => listener.close() };
}
