import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type FetchCommand, FetchCommandSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  CreateSessionRequestSchema,
  FetchFormat,
  type FetchRequestSchema,
  type FetchResponse,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { planSession } from "../../src/sessions/launch/session-plan.ts";
import { probeRuntimes } from "../../workers/base/runtimes.ts";
import { FetchBrowsers } from "../../workers/fetch/fetch-browsers.ts";
import { BoundsWatchdog } from "../../workers/isolation/bounds-watchdog.ts";
import { sessionBounds } from "../../workers/isolation/session-bounds.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { BrowserPool } from "../../workers/pool/browser-pool.ts";
import { silentLog as log } from "./database.ts";
import { FixtureSite } from "./fixture-site.ts";

/** Browsers of fetches without a worker, and a site that they may reach. */
export interface FetchScene extends AsyncDisposable {
  readonly site: FixtureSite;
  readonly slots: SlotPool;
  readonly pool: BrowserPool;
  readonly fetches: FetchBrowsers;
  /** Number of browsers that the pool has handed out. */
  readonly taken: number;
  commandOf(browserId: string, accountId: string, request?: FetchInit): FetchCommand;
  fetchBy(browserId: string, accountId: string, request?: FetchInit): Promise<FetchResponse>;
}

type FetchInit = MessageInitShape<typeof FetchRequestSchema>;

export async function startFetchScene(size: number): Promise<FetchScene> {
  const { env, platform } = process;
  const executables = findBrowsers({ env, dataDirectory: "/", platform, disk: realDisk });
  const site = await new FixtureSite().start();
  const slots = new SlotPool({ size, executables, log, allow: [site.host] });
  await slots.start();
  const runtimes = await probeRuntimes(executables);
  const watchdog = new BoundsWatchdog({ bounds: sessionBounds });
  const isOpen = () => true;
  const fetches = new FetchBrowsers({ browsers: () => pool, runtimes, watchdog, showRemedy: false, log, isOpen });
  let taken = 0;
  const onReady = () => {
    taken += 1;
  };
  const pool = new BrowserPool({ slots, runtimes: runtimes.keys(), log, max: 0, spares: fetches, isOpen, onReady });
  const commandOf: FetchScene["commandOf"] = (browserId, accountId, request = {}) => {
    const { archetype, locale } = request;
    const session = create(CreateSessionRequestSchema, {
      ...(archetype !== undefined && { archetype }),
      ...(locale !== undefined && { locale }),
    });
    const { browser: plan } = planSession(session, tiers.get("enterprise"));
    const page = { url: site.url("/article.html"), formats: [FetchFormat.HTML], timeoutMs: 20_000, ...request };
    return create(FetchCommandSchema, { browserId, accountId, plan, request: page });
  };
  return {
    site,
    slots,
    pool,
    fetches,
    get taken() {
      return taken;
    },
    commandOf,
    fetchBy: async (...command) => {
      const { header } = await fetches.fetch(commandOf(...command), new AbortController().signal);
      return header;
    },
    async [Symbol.asyncDispose]() {
      watchdog.stop();
      await fetches.stop();
      await pool.stop();
      await slots.stop();
      await site.stop();
    },
  };
}
