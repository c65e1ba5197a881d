import { create } from "@bufbuild/protobuf";
import {
  SlaReportSchema,
  type StatusService,
  SubscriptionStage,
  type SubscriptionState,
  SubscriptionStateSchema,
} from "../gen/pilothouse/v1/status_pb.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { bytesOfBody } from "../kernel/request-body.ts";
import { failFields } from "../platform/errors.ts";
import { percentOf, type Uptime } from "./sla.ts";
import { toStatusMessage } from "./snapshot.ts";
import type { Status } from "./status.ts";
import type { Subscription } from "./subscriptions.ts";

const stages = {
  pending: SubscriptionStage.PENDING,
  confirmed: SubscriptionStage.CONFIRMED,
  unsubscribed: SubscriptionStage.UNSUBSCRIBED,
};

const toMessage = ({ email, stage }: Subscription): SubscriptionState =>
  create(SubscriptionStateSchema, { email, status: stages[stage] });

const toUptime = (uptime: Uptime) => ({
  uptimePercent: percentOf(uptime),
  downtimeSeconds: Math.round(uptime.down / 1_000),
});

/** One-click request of an e-mail program (RFC 8058, section 3.1), in either form encoding. */
const oneClick = /List-Unsubscribe("?\s*=?\s*)One-Click/;

export function createStatusService(status: Status, slaTarget: number): ServiceImplementation<typeof StatusService> {
  const { feed, subscriptions } = status;
  return {
    get: async () => toStatusMessage(feed.now),
    watch: (call) => feed.follow(call),
    async getSla(_, { months = 3 }) {
      const report = await status.reportSla(months);
      return create(SlaReportSchema, {
        targetPercent: slaTarget,
        months: report.map(({ name: month, components, ...whole }) => ({
          month,
          ...toUptime(whole),
          components: components.map(({ name, ...own }) => ({ name, ...toUptime(own) })),
        })),
      });
    },
    subscribe: async ({ clientAddress }, { email }) => toMessage(await subscriptions.subscribe(email, clientAddress)),
    confirmSubscription: async (_, { token }) => toMessage(await subscriptions.confirm(token)),
    unsubscribe: async (_, { token }) => toMessage(await subscriptions.unsubscribe(token)),
    async unsubscribeOneClick(call, { token, form }) {
      const chunks = await Array.fromAsync(bytesOfBody(call, form));
      if (!oneClick.test(Buffer.concat(chunks).toString("latin1")))
        throw failFields("validation-failed", { form: "must contain `List-Unsubscribe=One-Click`" });
      return toMessage(await subscriptions.unsubscribe(token));
    },
  };
}
