export {
  type AgentOptions,
  type AgentResult,
  AgentRunError,
  type Agents,
  type PersonRequest,
} from "./agents.ts";
export { Pilothouse } from "./client.ts";
export type { Library, PlaywrightBrowser, PuppeteerBrowser } from "./connect.ts";
export {
  type ErrorSlug,
  PilothouseConnectionError,
  PilothouseError,
  PilothouseTimeoutError,
  type ProblemOf,
} from "./errors.ts";
export type { EventOptions } from "./event-stream.ts";
export type { SessionFiles } from "./files.ts";
export type * from "./gen/schema.ts";
export type { BrowserSession, Element, InteractOptions, Target, WaitCondition } from "./session.ts";
export type { SessionQuery, Sessions } from "./sessions.ts";
export type { CallOptions, ClientOptions, LogEntry, Query, RequestContent } from "./transport.ts";
export * as webhooks from "./webhooks.ts";
