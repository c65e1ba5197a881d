import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import { type ChannelOptions, Client, connectivityState } from "@grpc/grpc-js";
import { sleep } from "../../src/platform/bounded-wait.ts";
import type { FleetTlsFiles } from "../../src/platform/grpc/fleet-certificates.ts";
import { fleetClientCredentials, tlsNameOptions } from "../../src/platform/grpc/fleet-tls.ts";
import {
  callUnary,
  type GrpcCallOptions,
  type TypedMethod,
  untilConnected,
} from "../../src/platform/grpc/grpc-codec.ts";
import type { Log } from "../base/log.ts";
import { findControlProcesses } from "./control-addresses.ts";

const channelOptions: ChannelOptions = {
  "grpc.enable_retries": 0,
  // Reconnects within a second after a control process restarts on the same socket.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  "grpc.service_config_disable_resolution": 1,
};

/** A unary method that workers call on control processes. */
export type ControlMethod<I extends DescMessage, O extends DescMessage> = TypedMethod<"unary", I, O> & DescMethod;

/**
 * Milliseconds. `connect`: timeout of a connection. After a call that was not answered for 2 s, another process is thus
 * reached well within the lease of 8 s. `failedLater`: delay before connecting to the process that was called last,
 * so that others are preferred.
 */
const times = { connect: 1_000, failedLater: 250 };

interface Connection {
  readonly client: Client;
  readonly target: string;
}

/**
 * Calls one control process as long as it answers. After a failure, connects to all control processes at the same time
 * and takes the first that accepts. Addresses of ended processes, which DNS lists for a while, therefore do not delay
 * calls.
 */
export class ControlCaller {
  readonly #entries: readonly string[];
  readonly #tls: FleetTlsFiles | undefined;
  readonly #log: Log;
  /** Undefined before the first call and after a failed call. */
  #connection: Promise<Connection> | undefined;
  /** Address of the control process that was called last. Empty before the first call. */
  lastTarget = "";

  constructor(entries: readonly string[], tls: FleetTlsFiles | undefined, log: Log) {
    this.#entries = entries;
    this.#tls = tls;
    this.#log = log;
  }

  async call<I extends DescMessage, O extends DescMessage>(
    method: ControlMethod<I, O>,
    request: MessageShape<I>,
    options: GrpcCallOptions,
  ): Promise<MessageShape<O>> {
    this.#connection ??= this.#connect();
    const connection = this.#connection;
    try {
      const { client, target } = await connection;
      this.lastTarget = target;
      return await callUnary(client, method, request, options);
    } catch (thrown) {
      this.#discard(connection);
      throw thrown;
    }
  }

  close(): void {
    if (this.#connection) this.#discard(this.#connection);
  }

  #connect(): Promise<Connection> {
    const connection = this.#open(() => this.#discard(connection));
    return connection;
  }

  #discard(connection: Promise<Connection>): void {
    // A concurrent call may have replaced the connection already, and the replacement must stay.
    if (this.#connection === connection) this.#connection = undefined;
    connection.then(({ client }) => client.close()).catch(() => undefined);
  }

  /** Opens a connection, and calls the listener when it is lost. */
  async #open(onLost: () => void): Promise<Connection> {
    const failed = this.lastTarget;
    const addresses = await findControlProcesses(this.#entries);
    const connections = addresses.map(({ target, name }): Connection => {
      const options = { ...channelOptions, ...(name !== undefined && tlsNameOptions(name)) };
      return { target, client: new Client(target, fleetClientCredentials(this.#tls, this.#log), options) };
    });
    const accepted = connections.map(async (connection) => {
      if (connection.target === failed) await sleep(times.failedLater);
      await untilConnected(connection.client, times.connect);
      return connection;
    });
    const first = await Promise.any(accepted).catch(() => undefined);
    // A call over a lost connection would wait for an ended process.
    first?.client.getChannel().watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, onLost);
    // If none accepts, the call to any of them fails with the reason.
    const taken = first ?? (connections[0] as Connection);
    for (const { client } of connections) if (client !== taken.client) client.close();
    return taken;
  }
}
