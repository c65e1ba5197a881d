import { create } from "@bufbuild/protobuf";
import type { Channels, WorkerLink } from "../../fleet/channels.ts";
import { chooseWorker } from "../../fleet/placement.ts";
import type { WorkerAddress } from "../../fleet/store.ts";
import { CheckProxyCommandSchema, WorkerService } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Proxy as ProxyMessage } from "../../gen/pilothouse/v1/session_pb.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import { callUnary } from "../../platform/grpc/grpc-codec.ts";
import { statusToFailure } from "../../platform/grpc/grpc-failure.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { isConnectionLost } from "../commands/worker-commands.ts";
import { noCapacity, notIntegrated, workerLost } from "./launch-failure.ts";

/**
 * Milliseconds. `check`: for the proxy to respond. `margin`: for the worker's response. `connect`: for connecting to
 * the worker. `poll`: between attempts to find a worker.
 */
const times = { check: 10_000, margin: 2_000, connect: 2_000, poll: 100 };

export interface ProxyCheckParts {
  readonly db: Database;
  readonly channels: Channels;
  /** `host:port` that proxies are asked to connect to. */
  readonly proxyCheck: string;
  /** Milliseconds that a launch waits for a worker. */
  readonly queueMs: number;
}

export interface ProxyTrial {
  readonly proxy: ProxyMessage;
  readonly runtime: string;
  readonly traceparent: string;
}

/**
 * Creates the proxy test, which runs on a worker that could host the session, and needs neither a session nor a slot of
 * the worker. Throws `proxy-validation-failed`, or the failure of placing the session if no worker can run the test.
 */
export function createProxyCheck(parts: ProxyCheckParts): (trial: ProxyTrial) => Promise<void> {
  const { db, channels, proxyCheck } = parts;

  /** Finds a worker for the test, waiting as long as a session would wait for its slot. */
  async function waitForWorker(runtime: string, except: string | undefined): Promise<WorkerAddress> {
    const deadline = performance.now() + parts.queueMs;
    for (;;) {
      const worker = await chooseWorker(db, { runtime, ...(except !== undefined && { except }) });
      if (typeof worker === "object") return worker;
      if (worker === "not-integrated") throw notIntegrated(runtime);
      if (except !== undefined) throw workerLost();
      if (performance.now() >= deadline) throw noCapacity("no worker is registered");
      await sleep(times.poll);
    }
  }

  async function ask(link: WorkerLink, { proxy, traceparent }: ProxyTrial): Promise<void> {
    const command = create(CheckProxyCommandSchema, { timeoutMs: times.check, traceparent, proxy, target: proxyCheck });
    // Waits for the connection, which is reopened within a second after a restart of the worker.
    await channels.waitForConnection(link, times.connect);
    const options = { metadata: link.metadata, timeoutMs: times.check + times.margin };
    await callUnary(link.client, WorkerService.method.checkProxy, command, options);
  }

  return async (trial) => {
    let failed: string | undefined;
    let cause: unknown;
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const worker = await waitForWorker(trial.runtime, failed);
      try {
        return await ask(channels.to(worker), trial);
      } catch (error) {
        if (!isConnectionLost(error)) throw statusToFailure(error);
        failed = worker.id;
        cause = error;
      }
    }
    throw workerLost(cause);
  };
}
