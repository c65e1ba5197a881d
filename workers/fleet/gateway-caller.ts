import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import { type ChannelOptions, Client } from "@grpc/grpc-js";
import { dialledAs, type FleetTlsFiles, fleetClientCredentials } from "../../src/platform/grpc/fleet-tls.ts";
import { callUnary, type GrpcCallOptions, type TypedMethod } from "../../src/platform/grpc/grpc-codec.ts";
import type { GatewayRound } from "./gateway-round.ts";

const channelOptions: ChannelOptions = {
  "grpc.enable_retries": 0,
  // The next gateway on the same socket is found within a second.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  "grpc.service_config_disable_resolution": 1,
};

/** A method of gateways that workers call. */
export type GatewayMethod<I extends DescMessage, O extends DescMessage> = TypedMethod<"unary", I, O> & DescMethod;

/** Calls the gateway that answered last; whichever fails is left for the next one. */
export class GatewayCaller {
  readonly #gateways: GatewayRound;
  readonly #tls: FleetTlsFiles | undefined;
  /** Undefined until it is needed, and after one that failed. */
  #gateway: Promise<Client> | undefined;
  /** Where the gateway is that was called last. */
  called = "";

  constructor(gateways: GatewayRound, tls: FleetTlsFiles | undefined) {
    this.#gateways = gateways;
    this.#tls = tls;
  }

  async call<I extends DescMessage, O extends DescMessage>(
    method: GatewayMethod<I, O>,
    request: MessageShape<I>,
    options: GrpcCallOptions,
  ): Promise<MessageShape<O>> {
    this.#gateway ??= this.#connect();
    const called = this.#gateway;
    try {
      return await callUnary(await called, method, request, options);
    } catch (thrown) {
      // Another call may have left it already: the one after it must not be skipped.
      if (this.#gateway === called) this.#gateway = undefined;
      called.then((client) => client.close()).catch(() => undefined);
      throw thrown;
    }
  }

  async close(): Promise<void> {
    await this.#gateway?.then((client) => client.close()).catch(() => undefined);
  }

  async #connect(): Promise<Client> {
    const { target, name } = await this.#gateways.next();
    this.called = target;
    const options = { ...channelOptions, ...(name !== undefined && dialledAs(name)) };
    return new Client(target, fleetClientCredentials(this.#tls), options);
  }
}
