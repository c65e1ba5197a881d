import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import type { Isolation } from "../../src/platform/isolation.ts";
import type { Log } from "../base/log.ts";
import type { Relay } from "../egress/relay.ts";
import { confineCommand, type Sandbox } from "./confinement.ts";
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

/** How long processes may take to be gone after SIGKILL before an operator is told. */
const killMs = 10_000;

/** What the places of one worker have in common. */
export interface PlaceOptions {
  block: SlotBlock;
  isolation: Isolation;
  sandbox: Sandbox;
  log: Log;
}

/** The way out of a place: made once, used by one session after the other. */
interface Exit {
  listener: Server;
  port: number;
  enter: readonly string[];
  inode: number | undefined;
  close(): void;
}

/** The lasting part of a slot: its uid, the names of its directories, its network namespace and the socket in it. */
export class SlotPlace {
  readonly index: number;
  readonly uid: number | undefined;
  readonly directory: string;
  readonly storage: string;
  readonly #options: PlaceOptions;
  readonly #record: string;
  #exit: Promise<Exit> | undefined;
  #inode: number | undefined;
  #relay: Relay | undefined;
  #entrance: Promise<SlotEntrance> | undefined;

  constructor(index: number, options: PlaceOptions) {
    this.index = index;
    this.#options = options;
    this.uid = options.block.uidOf(index);
    this.directory = options.block.directoryOf(index);
    this.storage = options.block.storageOf(index);
    this.#record = options.block.recordOf(index);
  }

  /** Makes what is missing: the namespace with its socket, and an empty directory. */
  prepare(): Promise<SlotEntrance> {
    this.#entrance ??= this.#prepare().catch((error: unknown) => {
      this.#entrance = undefined;
      throw error;
    });
    return this.#entrance;
  }

  /** Gives the connections of the place's browser to a relay, or to none. */
  attach(relay: Relay | undefined): void {
    this.#relay = relay;
  }

  /** Kills every process of the place; tells whether none is left. */
  async kill(): Promise<boolean> {
    const entrance = await this.#entrance?.catch(() => undefined);
    const areStricken = entrance && this.uid !== undefined ? await killUid(entrance.confine) : false;
    const left = await killProcesses(this.#matchOurs(), killMs, areStricken);
    if (left.length === 0) return true;
    const pids = left.map(({ pid }) => pid);
    this.#options.log.error({ slot: this.index, pids }, "processes of a session are still there 10 s after SIGKILL");
    return false;
  }

  /** Removes what a session left on disk. */
  clear(): void {
    this.#entrance = undefined;
    removeSlotDirectories(this);
    rmSync(this.#record, { force: true });
    removeProfileRecord(this.#record);
  }

  /** Lets go of the namespace and its socket. */
  async close(): Promise<void> {
    const exit = this.#exit;
    this.#exit = undefined;
    this.#inode = undefined;
    this.#entrance = undefined;
    (await exit?.catch(() => undefined))?.close();
  }

  async #prepare(): Promise<SlotEntrance> {
    this.#exit ??= this.#makeExit().catch((error: unknown) => {
      this.#exit = undefined;
      throw error;
    });
    const exit = await this.#exit;
    makeSlotDirectories(this);
    return {
      confine: confineCommand(exit.enter, this.uid, this.#options.sandbox),
      relayPort: exit.port,
      record: this.#record,
    };
  }

  async #makeExit(): Promise<Exit> {
    const exit =
      this.#options.isolation === "namespace" ? await makeNamespaceExit(this.uid !== undefined) : await makeHostExit();
    this.#inode = exit.inode;
    exit.listener.on("connection", (socket) => {
      if (this.#relay) this.#relay.accept(socket);
      else socket.destroy();
    });
    return exit;
  }

  /**
   * Whoever is in the slot's namespace is ours too; an inode is given anew once its namespace is gone, but we hold it. So
   * is a launch that has not yet become the slot's user.
   */
  #matchOurs(): (entry: ProcessEntry) => boolean {
    const noted = readLaunchRecord(this.#record);
    const isOfSlot = matchSlots(this.#options.block, [this.index]);
    const isOurs = (entry: ProcessEntry) =>
      isOfSlot(entry) || (entry.pid === noted?.pid && entry.startedAt === noted.startedAt);
    const inode = this.#inode;
    if (this.uid !== undefined || inode === undefined) return isOurs;
    const own = process.getuid?.();
    return (entry) => isOurs(entry) || (entry.uid === own && networkNamespaceOf(entry.pid) === inode);
  }
}

async function makeNamespaceExit(isRoot: boolean): Promise<Exit> {
  const { listener, enter, inode, close } = await createNamespace(isRoot);
  return { listener, enter, inode, close, port: relayPort };
}

async function makeHostExit(): Promise<Exit> {
  const listener = createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("the relay's socket has no port");
  return { listener, port: address.port, enter: [], inode: undefined, close: () => listener.close() };
}
