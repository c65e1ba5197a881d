import { sql } from "kysely";
import type { Database } from "../../platform/postgres/database.ts";
import type { Migrations } from "../../platform/postgres/schema.ts";

/** An object of a processor, as JSON of its API. */
// biome-ignore lint/suspicious/noExplicitAny: the sandbox keeps what two other interfaces define.
export type SandboxObject = Record<string, any>;

export interface SandboxStore {
  get(id: string): Promise<SandboxObject | undefined>;
  put(kind: string, object: SandboxObject): Promise<void>;
  /** Lists up to 1,000 objects of a kind, newest first. */
  list(kind: string): Promise<SandboxObject[]>;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    sandbox_things: { id: string; kind: string; data: string; position: string };
  }
}

export const sandboxMigrations: Migrations = {
  "022-payment-sandbox": [
    `create table sandbox_things (
      id text primary key,
      kind text not null,
      data jsonb not null,
      position bigint generated always as identity
    )`,
    "create index sandbox_things_kind on sandbox_things (kind, position)",
  ],
};

export function createSandboxStore(db: Database): SandboxStore {
  return {
    async get(id) {
      const { rows } = await sql<{ data: SandboxObject }>`select data from sandbox_things where id = ${id}`.execute(
        db.sql,
      );
      return rows[0]?.data;
    },
    async put(kind, object) {
      const data = JSON.stringify(object);
      await sql`insert into sandbox_things (id, kind, data) values (${object.id}, ${kind}, ${data})
        on conflict (id) do update set data = excluded.data`.execute(db.sql);
    },
    async list(kind) {
      const { rows } = await sql<{ data: SandboxObject }>`
        select data from sandbox_things where kind = ${kind} order by position desc limit 1000`.execute(db.sql);
      return rows.map(({ data }) => data);
    },
  };
}
