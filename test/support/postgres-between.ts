import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databaseUrl, type EmptyDatabase } from "./database.ts";

type DatabasePlace = Pick<EmptyDatabase, "socketDirectory" | "name">;

const socketName = ".s.PGSQL.5432";

/** Proxy between a gateway and PostgreSQL. */
export class PostgresBetween {
  /** Address of the database through the proxy. */
  readonly url: string;
  /** Directory of the proxy's socket. */
  readonly #directory: string;
  /** Connections of clients, in order of arrival. */
  readonly connections: Socket[] = [];
  /** Number of messages from clients, at least one for each round trip. */
  asked = 0;
  /** Holds back PostgreSQL's replies from the first query with this text on, for connections made while it is set. */
  muteFrom: string | undefined;
  /** Resolves when a query with that text was sent. */
  readonly muted = Promise.withResolvers<void>();
  /** Whether all connections are broken and new ones refused. */
  #isAway = false;
  readonly #server: Server;

  private constructor(database: DatabasePlace, directory: string) {
    this.url = databaseUrl(directory, database.name);
    this.#directory = directory;
    this.#server = createServer((client) => {
      if (this.#isAway) {
        client.destroy();
        return;
      }
      const postgres = connect(join(database.socketDirectory, socketName));
      const { muteFrom } = this;
      let isMute = false;
      this.connections.push(client);
      client.on("data", (data) => {
        isMute ||= muteFrom !== undefined && data.includes(muteFrom);
        if (isMute) this.muted.resolve();
        this.asked += 1;
        postgres.write(data);
      });
      postgres.on("data", (data) => {
        if (!isMute) client.write(data);
      });
      for (const [one, other] of [
        [client, postgres],
        [postgres, client],
      ] as const) {
        one.on("error", () => undefined);
        one.on("close", () => other.destroy());
      }
    });
  }

  static async start(database: DatabasePlace): Promise<PostgresBetween> {
    const between = new PostgresBetween(database, await mkdtemp(join(tmpdir(), "between-")));
    await new Promise<void>((resolve) => between.#server.listen(join(between.#directory, socketName), resolve));
    return between;
  }

  /** Makes PostgreSQL unreachable, or reachable again. */
  set isAway(isAway: boolean) {
    this.#isAway = isAway;
    if (isAway) for (const connection of this.connections.splice(0)) connection.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const connection of this.connections) connection.destroy();
    await rm(this.#directory, { recursive: true });
  }
}
