import { type ChannelOptions, Client, Metadata } from "@grpc/grpc-js";
import { fleetMetadata } from "../platform/grpc/fleet-metadata.ts";
import { type FleetTlsFiles, fleetClientCredentials } from "../platform/grpc/fleet-tls.ts";
import { IdleMap } from "../platform/idle-map.ts";
import type { WorkerAddress } from "./store.ts";

/** A worker that can be called. */
export interface WorkerLink {
  readonly workerId: string;
  readonly client: Client;
  /** What every call carries. */
  readonly metadata: Metadata;
}

/** One HTTP/2 connection per worker. */
export interface Channels {
  /** Finds or opens the connection to a worker. */
  to(worker: WorkerAddress): WorkerLink;
  /** Resolves to whether the worker can be reached within so many milliseconds. */
  isBack(link: WorkerLink, timeout: number): Promise<boolean>;
  close(): void;
}

interface OpenLink extends WorkerLink {
  readonly address: string;
  readonly hash: string;
}

/** Milliseconds after which a connection that nobody has asked for is let go. What streams on it goes on. */
const idleFor = 600_000;

const options: ChannelOptions = {
  // A tap must never be sent twice, not even by a transparent retry.
  "grpc.enable_retries": 0,
  // A worker that comes back is found within a second.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  // A machine that vanished without a word is noticed before its lease is over.
  "grpc.keepalive_time_ms": 5_000,
  "grpc.keepalive_timeout_ms": 5_000,
  // A chunk of a capture and what comes with it. With the 64 KiB of HTTP/2 a picture has to wait twice for leave to go on.
  "grpc-node.flow_control_window": 512 * 1024,
  "grpc.service_config_disable_resolution": 1,
};

/** Makes the connections of a gateway. Each is opened when it is first used. */
export function createChannels(tls: FleetTlsFiles | undefined): Channels {
  const trust = fleetClientCredentials(tls);
  const links = new IdleMap<string, OpenLink>(idleFor, { onForget: ({ client }) => client.close() });
  return {
    to({ id, address, secretHash }) {
      const hash = secretHash.toString("hex");
      const found = links.get(id);
      if (found?.address === address && found.hash === hash) return found;
      found?.client.close();
      const metadata = new Metadata();
      metadata.set(fleetMetadata.workerSecretHash, hash);
      const link = { workerId: id, address, hash, metadata, client: new Client(address, trust, options) };
      links.set(id, link);
      return link;
    },
    isBack({ client }, timeout) {
      return new Promise((resolve) => client.waitForReady(Date.now() + timeout, (error) => resolve(!error)));
    },
    close() {
      for (const { client } of links.clear()) client.close();
    },
  };
}
