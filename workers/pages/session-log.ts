import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import {
  type SessionLogEntry,
  SessionLogEntrySchema,
  SessionLogLevel,
} from "../../src/gen/pilothouse/v1/session_log_pb.ts";

/** Limits of the entries in memory. The number of entries bounds the overhead per entry. */
export const sessionLogBounds = { bytes: 256 * 1024, entries: 2_000 };

/** Maximum number of entries that a follower decodes at once. */
const chunk = 100;

/** Fields of a new entry. */
export type LoggedFields = Omit<MessageInitShape<typeof SessionLogEntrySchema>, "id" | "at" | "$typeName">;

/** Log of a session in memory. Beyond its limits, the oldest entries are dropped. */
export class SessionLog {
  #level: SessionLogLevel = SessionLogLevel.OFF;
  /**
   * Encoded entries with consecutive numbers. Encoding copies the texts, so that longer browser strings can be freed.
   */
  readonly #entries: Uint8Array[] = [];
  #bytes = 0;
  /** Number of the newest entry. */
  #last = 0;
  #isClosed = false;
  #changed = Promise.withResolvers<void>();

  get level(): SessionLogLevel {
    return this.#level;
  }

  /** Whether entries are recorded. */
  get isOn(): boolean {
    return this.#level >= SessionLogLevel.ERRORS && !this.#isClosed;
  }

  /** Whether entries are recorded at level `full`. */
  get isFull(): boolean {
    return this.#level === SessionLogLevel.FULL && !this.#isClosed;
  }

  /** Number of dropped entries. */
  get dropped(): number {
    return this.#last - this.#entries.length;
  }

  /** Sets the level. Called when a session begins to use the browser. */
  start(level: SessionLogLevel): void {
    this.#level = level;
  }

  add(fields: LoggedFields): void {
    if (!this.isOn) return;
    this.#last += 1;
    const entry = create(SessionLogEntrySchema, { ...fields, id: String(this.#last), at: timestampNow() });
    const bytes = toBinary(SessionLogEntrySchema, entry);
    this.#entries.push(bytes);
    this.#bytes += bytes.length;
    while (this.#bytes > sessionLogBounds.bytes || this.#entries.length > sessionLogBounds.entries) {
      this.#bytes -= this.#entries.shift()?.length ?? 0;
    }
    this.#notify();
  }

  /** Returns at most `limit` entries with a number above `after`, oldest first. */
  read(after: number, limit = Number.POSITIVE_INFINITY): SessionLogEntry[] {
    const from = Math.max(0, after - this.dropped);
    return this.#entries.slice(from, from + limit).map((bytes) => fromBinary(SessionLogEntrySchema, bytes));
  }

  /** Yields entries with a number above `after`, until the log is closed or the signal aborts. */
  async *follow(after: number, signal: AbortSignal): AsyncGenerator<SessionLogEntry, void, undefined> {
    const stop = (): void => this.#notify();
    signal.addEventListener("abort", stop, { once: true });
    try {
      let last = after;
      while (!signal.aborted) {
        const entries = this.read(last, chunk);
        for (const entry of entries) {
          yield entry;
          last = Number(entry.id);
        }
        if (entries.length > 0) continue;
        if (this.#isClosed) return;
        await this.#changed.promise;
      }
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Ends recording. Followers end after the last entry. */
  close(): void {
    this.#isClosed = true;
    this.#notify();
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
