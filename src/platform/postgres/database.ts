import type { Duplex } from "node:stream";
import { type Compilable, Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from "kysely";
import pg from "pg";
import { sleep } from "../bounded-wait.ts";
import { fail, failFields } from "../errors.ts";
import type { Log } from "../log.ts";
import { inSpan } from "../traces/spans.ts";
import { connectionOptions, type DatabaseTarget } from "./database-target.ts";
import { DatabaseUnavailable, isConnectionLoss } from "./database-unavailable.ts";
import { HotStatements } from "./hot-statements.ts";
import { type MigrationResult, runMigrations } from "./run-migrations.ts";
import type { Migrations, Schema } from "./schema.ts";

/** Timeouts in milliseconds, so that stuck statements do not block clients. */
const timeouts = {
  statement: 10_000,
  lock: 5_000,
  idleInTransaction: 3_000,
  query: 12_000,
  /** Wait for a pooled connection, including connecting. The last of 500 concurrent requests waits for seconds. */
  acquire: 10_000,
};

/** A statement prepared once per connection, for hot paths: 21 us of CPU, against 48 us with the query builder. */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

/** Common part of databases and transactions. */
export interface Queryable {
  readonly sql: Kysely<Schema>;
  named<Row extends pg.QueryResultRow>(statement: NamedStatement, values: readonly unknown[]): Promise<Row[]>;
}

/** A transaction. Effects that must wait until the commit use `afterCommit`. */
export interface Tx extends Queryable {
  /** Sends a statement without waiting for its result, such as a lock or insert. A failure fails the transaction. */
  send(statement: Compilable): void;
  /** Like `send`, for hot paths. */
  sendNamed(statement: NamedStatement, values: readonly unknown[]): void;
  /** Calls `run` after the commit, in order of registration. Never called after a rollback. */
  afterCommit(run: () => void): void;
}

/** PostgreSQL. While it is unreachable, methods reject with `internal` and a Retry-After of one second. */
export interface Database extends Queryable {
  /**
   * Runs a transaction, and retries it after a deadlock or serialization failure, so `run` must change only the
   * database. A failed statement always fails the transaction, even if its error is caught.
   */
  transaction<T>(run: (tx: Tx) => Promise<T>): Promise<T>;
  /** Applies missing migrations. Throws StartRefused if the database has migrations, but not the first. */
  migrate(migrations: Migrations): Promise<MigrationResult>;
  /** Returns the names of applied migrations. */
  appliedMigrations(): Promise<ReadonlySet<string>>;
  close(): Promise<void>;
}

/** Timeouts of migrations. A process may wait while another process migrates, and building an index may take long. */
const migrationTimeouts = {
  ...timeouts,
  statement: 600_000,
  lock: 600_000,
  idleInTransaction: 600_000,
  query: 602_000,
};

/** Idle connections stay open, because reconnecting takes tens of milliseconds and parses all statements again. */
const idleMs = 600_000;

function createPool(target: DatabaseTarget, log: Log, size: number, limits = timeouts): pg.Pool {
  const pool = new pg.Pool({
    ...connectionOptions(target),
    connectionTimeoutMillis: limits.acquire,
    max: size,
    idleTimeoutMillis: idleMs,
    // Sends statements of a transaction without waiting for earlier results.
    pipeline: true,
    statement_timeout: limits.statement,
    lock_timeout: limits.lock,
    idle_in_transaction_session_timeout: limits.idleInTransaction,
    // Client-side limit, in case the server is stopped or unreachable.
    query_timeout: limits.query,
  });
  // A broken idle connection is replaced. Without a listener, its error would end the process.
  pool.on("error", (error) => log.debug({ err: error }, "an idle database connection was lost"));
  // An error between two statements of a transaction is reported by the next statement.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/** SQLSTATEs for U+0000, in parameters and in JSON: the only character that PostgreSQL cannot store. */
const unstorable = new Set(["22021", "22P05"]);

function isUnstorable(error: unknown): boolean {
  return error instanceof pg.DatabaseError && unstorable.has(error.code ?? "");
}

/** Returns whether a statement violated a unique constraint (SQLSTATE 23505). */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "23505";
}

/** Throws `validation-failed` for U+0000 and `internal` for a lost connection. Rethrows other errors. */
function rethrow(error: unknown): never {
  if (isUnstorable(error))
    throw failFields("validation-failed", { request: "contains U+0000, which cannot be stored" });
  if (!isConnectionLoss(error)) throw error;
  const detail = "the database is unreachable or out of resources; try again in 1 s";
  throw fail("internal", {}, { detail, retryAfter: 1, cause: new DatabaseUnavailable(error) });
}

/** Treats a missing table (SQLSTATE 42P01) as a database without migrations. */
function rethrowUnlessNew(error: unknown): { rows: [] } {
  if (error instanceof pg.DatabaseError && error.code === "42P01") return { rows: [] };
  return rethrow(error);
}

/** Opens a pool. Connects on first use. */
export function openDatabase(target: DatabaseTarget, log: Log, size = 20): Database {
  const pool = createPool(target, log, size);
  const connect = connectTo(pool);
  const sql = kyselyOver<Schema>(connect, () => pool.end());
  return {
    sql,
    async transaction(run) {
      const { result, after } = await inSpan("transaction", span, () => runUntilCommitted(connect, run));
      for (const hook of after) hook();
      return result;
    },
    async named<Row extends pg.QueryResultRow>({ name, text }: NamedStatement, values: readonly unknown[]) {
      const { rows } = await pool.query<Row>({ name, text, values: [...values] }).catch(rethrow);
      return rows;
    },
    async migrate(migrations) {
      const migrating = createPool(target, log, 1, migrationTimeouts);
      const migrator = kyselyOver<unknown>(connectTo(migrating), () => migrating.end());
      try {
        return await runMigrations(migrator, migrations, () => readApplied(pool));
      } finally {
        await migrator.destroy();
        // Kysely does not close a pool that it has never used.
        if (!migrating.ending) await migrating.end();
      }
    },
    appliedMigrations: () => readApplied(pool),
    async close() {
      await sql.destroy();
      // Kysely does not close a pool that it has never used.
      if (!pool.ending) await pool.end();
    },
  };
}

/** SQLSTATEs of transactions to retry: deadlock and serialization failure. */
const retriedCodes = new Set(["40P01", "40001"]);

const attempts = 4;
/** Milliseconds. The pause is doubled with each attempt and randomized, so that transactions do not collide again. */
const basePause = 10;

const span = { kind: "client", attributes: { "db.system.name": "postgresql" } } as const;

interface Committed<T> {
  readonly result: T;
  /** Hooks of `afterCommit`, to be called in order. */
  readonly after: readonly (() => void)[];
}

async function runUntilCommitted<T>(connect: Connect, run: (tx: Tx) => Promise<T>): Promise<Committed<T>> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await runTransaction(await connect(), run);
    } catch (error) {
      const isRetried = error instanceof pg.DatabaseError && retriedCodes.has(error.code ?? "");
      if (!isRetried || attempt === attempts) throw error;
      await sleep(Math.random() * basePause * 2 ** attempt);
    }
  }
}

/** Runs a transaction once. Kysely's own transactions do not pipeline statements. */
async function runTransaction<T>(connection: Connection, run: (tx: Tx) => Promise<T>): Promise<Committed<T>> {
  let failed: unknown;
  const query = (statement: pg.QueryConfig) =>
    connection.query(statement).catch((error: unknown) => {
      failed ??= error;
      throw error;
    });
  const after: (() => void)[] = [];
  // Statements awaited at the commit. BEGIN is one of them: it fails only if the connection does.
  const sent: Promise<unknown>[] = [];
  const send = (statement: pg.QueryConfig): void => {
    const answer = query(statement);
    // The error is thrown at the commit.
    answer.catch(() => undefined);
    sent.push(answer);
  };
  const tx: Tx = {
    sql: kyselyOver(async () => ({ query, release: () => undefined })),
    named: async <Row extends pg.QueryResultRow>({ name, text }: NamedStatement, values: readonly unknown[]) => {
      const { rows } = await query({ name, text, values: [...values] });
      // Callers declare the row type of their statement.
      return rows as Row[];
    },
    send(statement) {
      const { sql: text, parameters } = statement.compile();
      send({ text, values: [...parameters] });
    },
    sendNamed: ({ name, text }, values) => send({ name, text, values: [...values] }),
    afterCommit: (hook) => after.push(hook),
  };
  let result: T;
  try {
    send({ text: "begin" });
    result = await run(tx);
    const [{ command }] = await Promise.all([query({ text: "commit" }), ...sent]);
    // After a failed statement, PostgreSQL answers COMMIT with ROLLBACK.
    if (command !== "COMMIT") throw failed ?? new Error(`expected COMMIT, got ${command}`);
  } catch (error) {
    await connection.query({ text: "rollback" }).catch(() => undefined);
    // If a statement sent earlier failed, its error is the cause and is thrown instead.
    await Promise.all(sent);
    throw error;
  } finally {
    connection.release();
  }
  return { result, after };
}

async function readApplied(pool: pg.Pool): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ name: string }>("select name from kysely_migration").catch(rethrowUnlessNew);
  return new Set(rows.map(({ name }) => name));
}

/** A connection that converts errors, and is removed from the pool on release if it was lost. */
interface Connection {
  query(statement: pg.QueryConfig): Promise<pg.QueryResult>;
  release(destroy?: boolean): void;
}

/**
 * Returns a function that delays writes until the next tick, so that all statements of the current tick are sent with
 * one system call. A system call takes 0.2 ms, including the wake-up of the server.
 */
function createWriteGatherer(client: pg.PoolClient): () => void {
  // Cast: the types of pg lack the connection.
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection;
  let isGathering = false;
  return () => {
    if (isGathering) return;
    isGathering = true;
    stream.cork();
    // Runs once all pending promises have continued.
    process.nextTick(() => {
      isGathering = false;
      stream.uncork();
    });
  };
}

/** Sends a statement as a `Query`, since pg takes 2.5 us to copy a configuration to a `Query`. */
function sendStatement(client: pg.PoolClient, { text, name, values }: pg.QueryConfig): Promise<pg.QueryResult> {
  const { promise, resolve, reject } = Promise.withResolvers<pg.QueryResult>();
  const query = new pg.Query(text, values, (error, result) => (error ? reject(error) : resolve(result)));
  client.query(Object.assign(query, { name }));
  return promise;
}

type Connect = () => Promise<Connection>;

function connectTo(pool: pg.Pool): Connect {
  const hotStatements = new HotStatements();
  return async () => {
    const client = await pool.connect().catch(rethrow);
    const gatherWrites = createWriteGatherer(client);
    let lost = false;
    return {
      query(statement) {
        gatherWrites();
        return sendStatement(client, hotStatements.name(statement)).catch((error: unknown) => {
          lost ||= isConnectionLoss(error);
          // Replaces the stack of the socket with a stack that includes the caller of the statement.
          if (error instanceof Error) Error.captureStackTrace(error);
          return rethrow(error);
        });
      },
      release: (destroy = false) => client.release(destroy || lost),
    };
  };
}

function kyselyOver<Tables>(connect: Connect, end: () => Promise<void> = async () => undefined): Kysely<Tables> {
  const pool: PostgresPool = {
    options: {},
    end,
    async connect() {
      const { query, release } = await connect();
      // Adapts to Kysely's pool type. Kysely uses fewer commands than pg declares, and no cursors.
      return {
        query: (text: string, values: readonly unknown[]) => query({ text, values: [...values] }),
        release,
      } as unknown as PostgresPoolClient;
    },
  };
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
