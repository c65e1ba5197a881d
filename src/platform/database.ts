import { type Compilable, Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from "kysely";
import { Migrator } from "kysely/migration";
import pg from "pg";
import { migrations } from "../migrations/index.ts";
import type { Schema } from "../migrations/schema.ts";
import { DatabaseAway, isConnectionLoss } from "./database-away.ts";
import { fail, failFields } from "./errors.ts";
import type { Log } from "./log.ts";

/** Milliseconds. Statements of ours take a few; what takes longer than this is stuck, and its client is answered. */
const timeouts = { connect: 3_000, statement: 10_000, lock: 5_000, idleInTransaction: 10_000, query: 12_000 };

/** Where to connect: an address, or the socket directory of the embedded server. */
export type DatabaseTarget = { readonly url: string } | { readonly socketDirectory: string; readonly user: string };

/** A transaction. What must not happen before it is durable is handed to `afterCommit`. */
export interface Tx {
  readonly sql: Kysely<Schema>;
  /**
   * Sends a statement whose answer nobody needs, a lock or an insertion: what is asked for next, the commit at the
   * latest, travels with it and is carried out after it. When it fails, so does the transaction.
   */
  send(statement: Compilable): void;
  /** Runs after the commit, in the order in which it was asked for, and never after a rollback. */
  afterCommit(run: () => void): void;
}

/** A statement that is prepared once per connection, for hot paths (21 us of CPU against 48 us by the builder). */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

/** PostgreSQL. While it is out of reach every method throws `internal` with a Retry-After of one second. */
export interface Database {
  readonly sql: Kysely<Schema>;
  transaction<T>(run: (tx: Tx) => Promise<T>): Promise<T>;
  named<Row extends pg.QueryResultRow>(statement: NamedStatement, values: readonly unknown[]): Promise<Row[]>;
  migrate(): Promise<void>;
  close(): Promise<void>;
}

/** Options of a connection, also of those outside the pool. */
export function connectionOptions(target: DatabaseTarget): pg.ClientConfig {
  return {
    ...("url" in target
      ? { connectionString: target.url }
      : { host: target.socketDirectory, user: target.user, database: "postgres" }),
    application_name: "pilothouse",
    connectionTimeoutMillis: timeouts.connect,
    keepAlive: true,
  };
}

/** The same for migrations: a gateway that starts waits for another that migrates, and a new index may take its time. */
const migrationTimeouts = {
  ...timeouts,
  statement: 600_000,
  lock: 600_000,
  idleInTransaction: 600_000,
  query: 602_000,
};

function createPool(target: DatabaseTarget, log: Log, size: number, limits = timeouts): pg.Pool {
  const pool = new pg.Pool({
    ...connectionOptions(target),
    max: size,
    // Statements of a transaction need not wait for each other's answers.
    pipeline: true,
    statement_timeout: limits.statement,
    lock_timeout: limits.lock,
    idle_in_transaction_session_timeout: limits.idleInTransaction,
    // The client's own limit: a server that is stopped or cut off enforces none.
    query_timeout: limits.query,
  });
  // An idle connection that breaks is replaced by itself; without a listener it would end the process.
  pool.on("error", (error) => log.debug({ err: error }, "an idle database connection broke"));
  // The same for one that breaks between two statements of a transaction: the next statement says so.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** SQLSTATEs of a text with U+0000, as a parameter and inside JSON: the one character that PostgreSQL does not store. */
const unstorable = new Set(["22021", "22P05"]);

function isUnstorable(error: unknown): boolean {
  return error instanceof pg.DatabaseError && unstorable.has(error.code ?? "");
}

/** Rethrows what has a documented failure as that, and anything else as it is. */
function rethrow(error: unknown): never {
  if (isUnstorable(error))
    throw failFields("validation-failed", { request: "contains U+0000, which cannot be stored" });
  if (!isConnectionLoss(error)) throw error;
  const detail = "the database cannot be reached, or has no room";
  throw fail("internal", {}, { detail, retryAfter: 1, cause: new DatabaseAway(error) });
}

/** Opens a pool; connects when it is first used. */
export function openDatabase(target: DatabaseTarget, log: Log, size = 20): Database {
  const pool = createPool(target, log, size);
  const connections = translating(pool);
  const sql = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: connections }) });
  return {
    sql,
    transaction: (run) => runTransaction(connections, run),
    async named<Row extends pg.QueryResultRow>({ name, text }: NamedStatement, values: readonly unknown[]) {
      const { rows } = await pool.query<Row>({ name, text, values: [...values] }).catch(rethrow);
      return rows;
    },
    migrate: () => migrate(target, log),
    async close() {
      await sql.destroy();
      // Kysely ends only a pool that it has used itself.
      if (!pool.ending) await pool.end();
    },
  };
}

/** Runs a transaction. Kysely's own would send no statement before the last one is answered. */
async function runTransaction<T>(connections: PostgresPool, run: (tx: Tx) => Promise<T>): Promise<T> {
  const connection = await connections.connect();
  const own = { ...connection, release: () => undefined };
  const pool = { options: {}, connect: async () => own, end: async () => undefined };
  const after: (() => void)[] = [];
  const sent: Promise<unknown>[] = [];
  const tx: Tx = {
    sql: new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) }),
    send(statement) {
      const { sql: text, parameters } = statement.compile();
      const answer = connection.query(text, [...parameters]);
      // Heard at the end.
      answer.catch(() => undefined);
      sent.push(answer);
    },
    afterCommit: (hook) => after.push(hook),
  };
  let result: T;
  try {
    await connection.query("begin", []);
    result = await run(tx);
    await Promise.all([...sent, connection.query("commit", [])]);
  } catch (error) {
    await connection.query("rollback", []).catch(() => undefined);
    // One that was sent ahead is why those after it were refused.
    await Promise.all(sent);
    throw error;
  } finally {
    connection.release();
  }
  for (const hook of after) hook();
  return result;
}

/** Kysely holds an advisory lock meanwhile, so that of several gateways that start at once one migrates. */
async function migrate(target: DatabaseTarget, log: Log): Promise<void> {
  const pool = createPool(target, log, 2, migrationTimeouts);
  const sql = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: translating(pool) }) });
  try {
    const migrator = new Migrator({ db: sql, provider: { getMigrations: async () => ({ ...migrations }) } });
    const { error } = await migrator.migrateToLatest();
    if (error) throw error;
  } finally {
    await sql.destroy();
  }
}

/** The pool as kysely sees it: one whose lost connections are failures of ours already, and leave the pool. */
function translating(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect().catch(rethrow);
      let lost = false;
      const query = (text: string, values: readonly unknown[]) =>
        client.query(text, [...values]).catch((error: unknown) => {
          lost ||= isConnectionLoss(error);
          return rethrow(error);
        });
      // The boundary to kysely: its second overload takes cursors, and is used only when a cursor class is configured.
      return {
        query,
        release: (destroy?: boolean) => client.release(destroy || lost),
      } as unknown as PostgresPoolClient;
    },
  };
}
