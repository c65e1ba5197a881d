import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { file_pilothouse_v1_agent_turn } from "../gen/pilothouse/v1/agent_turn_pb.ts";
import { file_pilothouse_v1_api_key } from "../gen/pilothouse/v1/api_key_pb.ts";
import { file_pilothouse_v1_crypto_order } from "../gen/pilothouse/v1/crypto_order_pb.ts";
import { file_pilothouse_v1_limits } from "../gen/pilothouse/v1/limits_pb.ts";
import { event_type, subscribable } from "../gen/pilothouse/v1/options_pb.ts";
import { file_pilothouse_v1_session } from "../gen/pilothouse/v1/session_pb.ts";

/** Proto files with subscribable events. Listed, because reading all proto files would delay startup by 80 ms. */
const files = [
  file_pilothouse_v1_agent_turn,
  file_pilothouse_v1_api_key,
  file_pilothouse_v1_crypto_order,
  file_pilothouse_v1_limits,
  file_pilothouse_v1_session,
];

/** `data` schema of each event type that webhook endpoints can subscribe to. */
export const subscribableEvents: readonly DescMessage[] = files
  .flatMap(({ messages }) => messages)
  .filter((message) => getOption(message, subscribable));

/** Event types that webhook endpoints can subscribe to. */
export const subscribableTypes: ReadonlySet<string> = new Set(
  subscribableEvents.map((message) => getOption(message, event_type)),
);

/** Validation error for an unknown event type. */
export const unknownTypeMessage = `must be one of ${[...subscribableTypes].sort().join(", ")}`;
