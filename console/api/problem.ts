import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { RequestRefused } from "./session-login.ts";

/** A failed request, as pages show it. */
export interface ApiProblem {
  /** Type of the error, or `offline` if the service was not reached. */
  readonly slug: string;
  /** Sentence without a full stop. */
  readonly detail: string;
  readonly requestId: string | undefined;
  readonly faults: readonly { readonly field: string; readonly message: string }[];
  readonly retryAfterSeconds: number | undefined;
  readonly extensions: Readonly<Record<string, string>>;
}

const none = { requestId: undefined, faults: [], retryAfterSeconds: undefined, extensions: {} };

/** Describes an error of a request. */
export function problemOf(error: unknown): ApiProblem {
  if (error instanceof RequestRefused) {
    return { ...none, slug: error.slug, detail: error.message, requestId: error.requestId, faults: error.faults };
  }
  if (!(error instanceof ConnectError)) {
    const isNetwork = error instanceof TypeError;
    return isNetwork ? offline : { ...none, slug: "internal", detail: "the page could not handle the response" };
  }
  const [info] = error.findDetails(ErrorInfoSchema);
  if (!info && (error.cause instanceof TypeError || error.code === Code.Unavailable)) return offline;
  const [bad] = error.findDetails(BadRequestSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  return {
    slug: info?.reason ?? "internal",
    detail: error.rawMessage,
    requestId: error.metadata.get("x-request-id") ?? undefined,
    faults: (bad?.fieldViolations ?? []).map(({ field, description }) => ({ field, message: description })),
    retryAfterSeconds: retry?.retryDelay ? Number(retry.retryDelay.seconds) : undefined,
    extensions: info?.metadata ?? {},
  };
}

const offline: ApiProblem = { ...none, slug: "offline", detail: "the service does not respond" };

/** Returns the text as a sentence. */
export function toSentence(text: string): string {
  return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}
