export {
  type AgentOptions,
  type AgentResult,
  AgentRunError,
  type AgentRunIds,
  type Agents,
  type PersonRequest,
} from "./agents.ts";
export { type FetchedPage, Pilothouse } from "./client.ts";
export type { Element, InteractOptions, PageCommands, Target, WaitCondition } from "./commands.ts";
export type { Library, PlaywrightBrowser, PuppeteerBrowser } from "./connect.ts";
export type { Drive } from "./drive.ts";
export {
  type ErrorSlug,
  PilothouseConnectionError,
  PilothouseError,
  PilothouseResponseError,
  PilothouseTimeoutError,
  type ProblemOf,
} from "./errors.ts";
export type { EventOptions } from "./event-stream.ts";
export type { SessionFiles } from "./files.ts";
export type * from "./gen/schema.ts";
export type { BrowserSession } from "./session.ts";
export type { SessionQuery, Sessions } from "./sessions.ts";
export type { CallOptions, ClientOptions, LogEntry, Query, RequestContent } from "./transport.ts";
export * as webhooks from "./webhooks.ts";
