import {
  type Compilable,
  CompiledQuery,
  Kysely,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
} from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import pg from "pg";
import { sleep } from "../bounded-wait.ts";
import { fail, failFields } from "../errors.ts";
import type { Log } from "../log.ts";
import { DatabaseAway, isConnectionLoss } from "./database-away.ts";
import type { Migrations, Schema } from "./schema.ts";

/** Milliseconds. Statements of ours take a few; what takes longer than this is stuck, and its client is answered. */
const timeouts = {
  ...{ connect: 3_000, statement: 10_000, lock: 5_000, idleInTransaction: 3_000, query: 12_000 },
  /** For one's turn at the pool, which may have to connect first: of 500 requests at once the last waits for seconds. */
  turn: 10_000,
};

/** Where to connect: an address, or the socket directory of the embedded server. */
export type DatabaseTarget = { readonly url: string } | { readonly socketDirectory: string; readonly user: string };

/** A statement that is prepared once per connection, for hot paths (21 us of CPU against 48 us by the builder). */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

/** What reads take: they need not know whether they are part of a transaction. */
export interface Queryable {
  readonly sql: Kysely<Schema>;
  named<Row extends pg.QueryResultRow>(statement: NamedStatement, values: readonly unknown[]): Promise<Row[]>;
}

/** A transaction. What must not happen before it is durable is handed to `afterCommit`. */
export interface Tx extends Queryable {
  /**
   * Sends a statement whose answer nobody needs, a lock or an insertion: what is asked for next, the commit at the
   * latest, travels with it and is carried out after it. When it fails, so does the transaction.
   */
  send(statement: Compilable): void;
  /** The same for a statement on a hot path. */
  sendNamed(statement: NamedStatement, values: readonly unknown[]): void;
  /** Runs after the commit, in the order in which it was asked for, and never after a rollback. */
  afterCommit(run: () => void): void;
}

/** PostgreSQL. While it is out of reach every method throws `internal` with a Retry-After of one second. */
export interface Database extends Queryable {
  /**
   * Runs a transaction, and runs it anew when PostgreSQL gives it up for another one (a deadlock): `run` may change
   * nothing but the database. A statement that fails is the end of the transaction, whoever catches its error.
   */
  transaction<T>(run: (tx: Tx) => Promise<T>): Promise<T>;
  migrate(migrations: Migrations): Promise<void>;
  /** Reads the names of the migrations that have been run. */
  appliedMigrations(): Promise<ReadonlySet<string>>;
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

/** The same for migrations: a process that starts waits for another that migrates, and a new index may take its time. */
const migrationTimeouts = {
  ...timeouts,
  statement: 600_000,
  lock: 600_000,
  idleInTransaction: 600_000,
  query: 602_000,
};

/** A connection that is made anew costs tens of milliseconds, and parses each statement again: so what a burst has opened stays. */
const idleMs = 600_000;

function createPool(target: DatabaseTarget, log: Log, size: number, limits = timeouts): pg.Pool {
  const pool = new pg.Pool({
    ...connectionOptions(target),
    connectionTimeoutMillis: limits.turn,
    max: size,
    idleTimeoutMillis: idleMs,
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

/** Says whether a statement has failed because another row has what may be there once (SQLSTATE 23505). */
export function isTaken(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "23505";
}

/** Rethrows what has a documented failure as that, and anything else as it is. */
function rethrow(error: unknown): never {
  if (isUnstorable(error))
    throw failFields("validation-failed", { request: "contains U+0000, which cannot be stored" });
  if (!isConnectionLoss(error)) throw error;
  const detail = "the database cannot be reached, or has no room";
  throw fail("internal", {}, { detail, retryAfter: 1, cause: new DatabaseAway(error) });
}

/** SQLSTATE of a table that does not exist: nothing was migrated so far. */
function rethrowUnlessNew(error: unknown): { rows: [] } {
  if (error instanceof pg.DatabaseError && error.code === "42P01") return { rows: [] };
  return rethrow(error);
}

/** Opens a pool; connects when it is first used. */
export function openDatabase(target: DatabaseTarget, log: Log, size = 20): Database {
  const pool = createPool(target, log, size);
  const connect = connectTo(pool);
  const sql = kyselyOver<Schema>(connect, () => pool.end());
  return {
    sql,
    transaction: (run) => runUntilCommitted(connect, run),
    async named<Row extends pg.QueryResultRow>({ name, text }: NamedStatement, values: readonly unknown[]) {
      const { rows } = await pool.query<Row>({ name, text, values: [...values] }).catch(rethrow);
      return rows;
    },
    migrate: (migrations) => migrate(target, log, migrations),
    async appliedMigrations() {
      const { rows } = await pool.query<{ name: string }>("select name from kysely_migration").catch(rethrowUnlessNew);
      return new Set(rows.map(({ name }) => name));
    },
    async close() {
      await sql.destroy();
      // Kysely ends only a pool that it has used itself.
      if (!pool.ending) await pool.end();
    },
  };
}

/** SQLSTATEs of a transaction that PostgreSQL gave up for another one: a deadlock, and a serialization failure. */
const givenUp = new Set(["40P01", "40001"]);

const attempts = 4;
/** Milliseconds, doubled with each attempt and spread at random, so that two do not meet again. */
const firstPause = 10;

async function runUntilCommitted<T>(connect: Connect, run: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await runTransaction(await connect(), run);
    } catch (error) {
      const isGivenUp = error instanceof pg.DatabaseError && givenUp.has(error.code ?? "");
      if (!isGivenUp || attempt === attempts) throw error;
      await sleep(Math.random() * firstPause * 2 ** attempt);
    }
  }
}

/** Runs a transaction once. Kysely's own would send no statement before the last one is answered. */
async function runTransaction<T>(connection: Connection, run: (tx: Tx) => Promise<T>): Promise<T> {
  let failed: unknown;
  const query = (statement: pg.QueryConfig) =>
    connection.query(statement).catch((error: unknown) => {
      failed ??= error;
      throw error;
    });
  const after: (() => void)[] = [];
  // What nobody awaits until the commit. BEGIN is among it: it fails only with its connection, and then all else does.
  const sent: Promise<unknown>[] = [];
  const send = (statement: pg.QueryConfig): void => {
    const answer = query(statement);
    // Its error is thrown with the commit's.
    answer.catch(() => undefined);
    sent.push(answer);
  };
  const tx: Tx = {
    sql: kyselyOver(async () => ({ query, release: () => undefined })),
    named: async <Row extends pg.QueryResultRow>({ name, text }: NamedStatement, values: readonly unknown[]) => {
      const { rows } = await query({ name, text, values: [...values] });
      // The caller says which rows its statement gives.
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
    // The answer to the commit of a transaction in which a statement has failed.
    if (command !== "COMMIT") throw failed ?? new Error(`the commit was answered with ${command}`);
  } catch (error) {
    await connection.query({ text: "rollback" }).catch(() => undefined);
    // When a statement that was sent ahead has failed, its error is the cause of the one caught here: it is thrown instead.
    await Promise.all(sent);
    throw error;
  } finally {
    connection.release();
  }
  for (const hook of after) hook();
  return result;
}

/** Kysely holds an advisory lock meanwhile, so that of several gateways that start at once one migrates. */
async function migrate(target: DatabaseTarget, log: Log, migrations: Migrations): Promise<void> {
  const pool = createPool(target, log, 2, migrationTimeouts);
  const sql = kyselyOver<unknown>(connectTo(pool), () => pool.end());
  try {
    const migrator = new Migrator({ db: sql, provider: { getMigrations: async () => asKysely(migrations) } });
    const { error } = await migrator.migrateToLatest();
    if (error) throw error;
  } finally {
    await sql.destroy();
  }
}

/** Migrations as kysely runs them, by name. */
function asKysely(migrations: Migrations): Record<string, Migration> {
  const run = (statements: readonly string[]) => async (db: Kysely<unknown>) => {
    for (const statement of statements) await db.executeQuery(CompiledQuery.raw(statement));
  };
  return Object.fromEntries(Object.entries(migrations).map(([name, statements]) => [name, { up: run(statements) }]));
}

/** A connection whose loss is a failure of ours already, and takes it out of the pool when it is given back. */
interface Connection {
  query(statement: pg.QueryConfig): Promise<pg.QueryResult>;
  release(destroy?: boolean): void;
}

type Connect = () => Promise<Connection>;

function connectTo(pool: pg.Pool): Connect {
  return async () => {
    const client = await pool.connect().catch(rethrow);
    let lost = false;
    return {
      query: (statement) =>
        client.query(statement).catch((error: unknown) => {
          lost ||= isConnectionLoss(error);
          return rethrow(error);
        }),
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
      // The boundary to kysely: it knows fewer commands than pg, and an overload for cursors that is not used.
      return {
        query: (text: string, values: readonly unknown[]) => query({ text, values: [...values] }),
        release,
      } as unknown as PostgresPoolClient;
    },
  };
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}
