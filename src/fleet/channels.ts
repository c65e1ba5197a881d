import { type ChannelOptions, Client, Metadata } from "@grpc/grpc-js";
import type { FleetTlsFiles } from "../platform/grpc/fleet-certificates.ts";
import { fleetMetadata } from "../platform/grpc/fleet-metadata.ts";
import { fleetClientCredentials } from "../platform/grpc/fleet-tls.ts";
import { IdleMap } from "../platform/idle-map.ts";
import type { Log } from "../platform/log.ts";
import type { WorkerAddress } from "./store.ts";

/** gRPC client of a worker, with the metadata of its calls. */
export interface WorkerLink {
  readonly workerId: string;
  readonly client: Client;
  readonly metadata: Metadata;
}

/** Keeps one HTTP/2 connection per worker. */
export interface Channels {
  /** Returns the client of a worker. Creates a client at the first call and if the address or secret has changed. */
  to(worker: WorkerAddress): WorkerLink;
  /** Resolves with whether the worker is reachable within `timeout` milliseconds. */
  waitForConnection(link: WorkerLink, timeout: number): Promise<boolean>;
  close(): void;
}

interface OpenLink extends WorkerLink {
  readonly address: string;
  readonly hash: string;
}

/** Milliseconds after which an unused connection is closed, at the next new connection. Open streams continue. */
const idleFor = 600_000;

const options: ChannelOptions = {
  // Disables all gRPC retries, including transparent ones: commands such as a tap must not run twice.
  "grpc.enable_retries": 0,
  // Reconnects to a returning worker within a second.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  // Detects a lost machine within 10 s.
  "grpc.keepalive_time_ms": 5_000,
  "grpc.keepalive_timeout_ms": 5_000,
  // Fits a chunk of a capture. With the HTTP/2 default of 64 KiB, a picture has to wait twice for a window update.
  "grpc-node.flow_control_window": 512 * 1024,
  "grpc.service_config_disable_resolution": 1,
};

/** Creates the connections of a gateway. Each connection is opened on first use. */
export function createChannels(tls: FleetTlsFiles | undefined, log: Log): Channels {
  const trust = fleetClientCredentials(tls, log);
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
    waitForConnection({ client }, timeout) {
      return new Promise((resolve) => client.waitForReady(Date.now() + timeout, (error) => resolve(!error)));
    },
    close() {
      for (const { client } of links.clear()) client.close();
    },
  };
}
