import { Isolation, type RegisterRequest } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { fail } from "../platform/errors.ts";
import { type Ids, randomText } from "../platform/ids.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { hashSecret, matchesHash } from "../platform/secrets/secrets.ts";
import { defaultPool, isPoolName } from "../platform/worker-pool.ts";
import type { SessionKeeper } from "./session-keeper.ts";
import { lockRegistered, releaseAllSlots, saveWorker } from "./store.ts";

/** 5 bits per character: 200 random bits. */
const secretLength = 40;

/** A registered worker. */
interface Admission {
  readonly id: string;
  readonly secretHash: Buffer;
  /** Empty if the worker keeps its secret. */
  readonly newSecret: string;
  readonly incarnation: bigint;
  readonly restarted: boolean;
}

const isolationNames: Readonly<Record<number, string>> = {
  [Isolation.NAMESPACE]: "namespace",
  [Isolation.FLAGS]: "flags",
};

/** Throws `bad-request` if a registration lacks a field or has an invalid pool. */
export function validateRegistration({ address, runtimes, slots, bootId, pool }: RegisterRequest): void {
  if (pool !== "" && !isPoolName(pool)) {
    throw fail("bad-request", {}, { detail: "expected a pool of at most 63 lower-case letters, digits and hyphens" });
  }
  if (address === "" || runtimes.length === 0 || slots === 0 || bootId === "") {
    throw fail("bad-request", {}, { detail: "expected address, runtimes, slots and boot_id in a registration" });
  }
}

/** Identifies a registering worker by its id, else by its boot id, else as a new worker. */
async function identifyRegistered(tx: Tx, ids: Ids, request: RegisterRequest): Promise<Admission> {
  const row = await lockRegistered(tx, request.workerId, request.bootId);
  const isItself = row !== undefined && row.id === request.workerId;
  if (isItself && !matchesHash(request.workerSecret, row.secret_hash)) {
    throw fail("unauthorized", {}, { detail: "worker_secret does not match worker_id" });
  }
  const restarted = row !== undefined && row.boot_id !== request.bootId;
  const incarnation = row ? BigInt(row.incarnation) + (restarted ? 1n : 0n) : 1n;
  if (isItself) return { id: row.id, secretHash: row.secret_hash, newSecret: "", incarnation, restarted };
  // First registration, or a retry because the response with the secret was lost.
  const newSecret = randomText(secretLength);
  return { id: row?.id ?? ids.next("wrk"), secretHash: hashSecret(newSecret), newSecret, incarnation, restarted };
}

/** Saves a registering worker. If the worker was restarted, ends the sessions of its previous incarnation. */
export async function admitWorker(
  tx: Tx,
  { ids, keeper }: { readonly ids: Ids; readonly keeper: SessionKeeper },
  request: RegisterRequest,
): Promise<Admission> {
  const admitted = await identifyRegistered(tx, ids, request);
  const { address, runtimes, slots, bootId, isolation, unsandboxed, release } = request;
  const isolationName = isolationNames[isolation] ?? "unknown";
  const described = { address, runtimes, slots, bootId, isolation: isolationName, unsandboxed, release };
  const pool = request.pool || defaultPool;
  await saveWorker(tx, { ...admitted, ...described, pool });
  if (admitted.restarted) {
    const end = { reason: "worker_lost", detail: "the worker was restarted" } as const;
    await keeper.endAllOf(tx, admitted.id, end);
    await releaseAllSlots(tx, admitted.id);
  }
  return admitted;
}
