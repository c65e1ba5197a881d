import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import { type ChannelOptions, Client } from "@grpc/grpc-js";
import { dialledAs, type FleetTlsFiles, fleetClientCredentials } from "../../src/platform/grpc/fleet-tls.ts";
import { callUnary, type GrpcCallOptions, type TypedMethod } from "../../src/platform/grpc/grpc-codec.ts";
import type { Log } from "../base/log.ts";
import type { ControlRound } from "./control-round.ts";

const channelOptions: ChannelOptions = {
  "grpc.enable_retries": 0,
  // Reconnects within a second after a control process restarts on the same socket.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  "grpc.service_config_disable_resolution": 1,
};

/** A unary method that workers call on control processes. */
export type ControlMethod<I extends DescMessage, O extends DescMessage> = TypedMethod<"unary", I, O> & DescMethod;

/** Calls the control process that answered last. After a failure, switches to the next control process. */
export class ControlCaller {
  readonly #control: ControlRound;
  readonly #tls: FleetTlsFiles | undefined;
  readonly #log: Log;
  /** Client of the current control process. Undefined before the first call and after a failed call. */
  #client: Promise<Client> | undefined;
  /** Address of the control process that was called last. */
  called = "";

  constructor(control: ControlRound, tls: FleetTlsFiles | undefined, log: Log) {
    this.#control = control;
    this.#tls = tls;
    this.#log = log;
  }

  async call<I extends DescMessage, O extends DescMessage>(
    method: ControlMethod<I, O>,
    request: MessageShape<I>,
    options: GrpcCallOptions,
  ): Promise<MessageShape<O>> {
    this.#client ??= this.#connect();
    const called = this.#client;
    try {
      return await callUnary(await called, method, request, options);
    } catch (thrown) {
      // A concurrent call may have replaced the client already, and the replacement must stay.
      if (this.#client === called) this.#client = undefined;
      called.then((client) => client.close()).catch(() => undefined);
      throw thrown;
    }
  }

  async close(): Promise<void> {
    await this.#client?.then((client) => client.close()).catch(() => undefined);
  }

  async #connect(): Promise<Client> {
    const { target, name } = await this.#control.next();
    this.called = target;
    const options = { ...channelOptions, ...(name !== undefined && dialledAs(name)) };
    return new Client(target, fleetClientCredentials(this.#tls, this.#log), options);
  }
}
