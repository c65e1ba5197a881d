import { promisify } from "node:util";
import { zstdCompress } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  ControlService,
  type EndedSessionLog,
  EndedSessionLogSchema,
  type SessionLogPage,
  SessionLogPageSchema,
  StoreLogsRequestSchema,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Placement } from "../base/reports.ts";
import type { FleetLink } from "./fleet-link.ts";

/** Maximum sizes in bytes: of a compressed log, of the logs in one call, and of all logs that wait. */
export const logSizes = { log: 64 * 1024, batch: 1024 * 1024, waiting: 8 * 1024 * 1024 };

/** Maximum number of logs that wait for compression. Each has up to 256 KiB. */
const maxUnpacked = 100;

/** Whether a control process stored a log. */
type LogOutcome = "stored" | "lost";

export interface LogSenderOptions {
  readonly link: Pick<FleetLink, "call" | "storesLogs">;
  /** Called with the outcome of a number of logs. */
  onOutcome(outcome: LogOutcome, count: number): void;
}

const compress = promisify(zstdCompress);

/**
 * Sends the logs of ended sessions to a control process, one call at a time. Logs added during a call are sent
 * together. A log that cannot be sent or stored at once is lost: repeating calls would load a busy database further.
 */
export class LogSender {
  readonly #options: LogSenderOptions;
  readonly #unpacked: { readonly placement: Placement; readonly read: () => SessionLogPage }[] = [];
  #packed: EndedSessionLog[] = [];
  #bytes = 0;
  #packing: Promise<void> | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: LogSenderOptions) {
    this.#options = options;
  }

  /** Adds the log of an ended session. `read` is called later, at most once. */
  add(placement: Placement, read: () => SessionLogPage): void {
    if (!this.#options.link.storesLogs || this.#unpacked.length >= maxUnpacked) {
      this.#options.onOutcome("lost", 1);
      return;
    }
    this.#unpacked.push({ placement, read });
    this.#packing ??= this.#packAll();
  }

  /** Resolves when every pending log has been sent or is lost. */
  async stop(): Promise<void> {
    await this.#packing;
    await this.#sending;
  }

  async #packAll(): Promise<void> {
    for (let next = this.#unpacked.shift(); next; next = this.#unpacked.shift()) {
      const { sessionId, placementEpoch } = next.placement;
      // An error in one log must not stop the others.
      const data = await packLog(next.read).catch(() => undefined);
      if (!data || this.#bytes + data.length > logSizes.waiting) {
        this.#options.onOutcome("lost", 1);
        continue;
      }
      this.#packed.push(create(EndedSessionLogSchema, { sessionId, placementEpoch, data }));
      this.#bytes += data.length;
      this.#sending ??= this.#sendAll();
    }
    this.#packing = undefined;
  }

  async #sendAll(): Promise<void> {
    while (this.#packed.length > 0) {
      const logs = this.#takeBatch();
      const answer = await this.#options.link.call(ControlService.method.storeLogs, () =>
        create(StoreLogsRequestSchema, { logs }),
      );
      const stored = Math.min(answer?.stored ?? 0, logs.length);
      if (stored > 0) this.#options.onOutcome("stored", stored);
      if (stored < logs.length) this.#options.onOutcome("lost", logs.length - stored);
    }
    this.#sending = undefined;
  }

  #takeBatch(): EndedSessionLog[] {
    let bytes = 0;
    const isOver = ({ data }: EndedSessionLog): boolean => {
      bytes += data.length;
      return bytes > logSizes.batch;
    };
    const end = this.#packed.findIndex(isOver);
    const batch = this.#packed.splice(0, end < 0 ? this.#packed.length : Math.max(1, end));
    for (const { data } of batch) this.#bytes -= data.length;
    return batch;
  }
}

/** Compresses a log. If the result is too long, drops the older half of the entries until it fits. */
export async function packLog(read: () => SessionLogPage): Promise<Uint8Array> {
  const page = read();
  for (;;) {
    const data = await compress(toBinary(SessionLogPageSchema, page));
    if (data.length <= logSizes.log || page.entries.length === 0) return data;
    page.dropped += page.entries.splice(0, Math.ceil(page.entries.length / 2)).length;
  }
}
