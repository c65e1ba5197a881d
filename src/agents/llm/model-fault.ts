import { APICallError } from "ai";
import { FetchFault } from "../../platform/outgoing/fetch-fault.ts";

export type ModelFaultKind =
  /** The provider rejects the key. */
  | "wrong_key"
  /** The provider has no such model, or does not offer it to this key. */
  | "model_refused"
  /** The request failed, or the response was interrupted, late or too large. */
  | "unreachable"
  /** The provider is overloaded, its rate limit is reached, or its response could not be read. A retry may succeed. */
  | "busy"
  /** The provider rejects the request as invalid. */
  | "refused";

export interface ModelFault {
  readonly kind: ModelFaultKind;
  /** Message of the provider, or of this service if the provider sent none. Shown to users. */
  readonly message: string;
  /** Milliseconds to wait before a retry, if the provider requests a wait. */
  readonly retryAfter?: number;
}

/** Maximum characters of a provider's message. The rest is dropped. */
const longestMessage = 300;

/** Classifies the error of a model call. Removes the key from the message. */
export function readModelFault(thrown: unknown, apiKey: string): ModelFault {
  const fault = kindOf(thrown);
  const message = fault.message.replaceAll(apiKey, "[key]").slice(0, longestMessage);
  return { ...fault, message };
}

function kindOf(thrown: unknown): ModelFault {
  const fault = [thrown, thrown instanceof Error ? thrown.cause : undefined].find((each) => each instanceof FetchFault);
  if (fault) return { kind: "unreachable", message: `the provider ${fault.message}` };
  if (!APICallError.isInstance(thrown))
    return { kind: "busy", message: "the response was truncated or could not be read" };
  const { statusCode: status = 0, message, responseBody = "", responseHeaders = {} } = thrown;
  const seconds = Number(responseHeaders["retry-after"]);
  const retryAfter = Number.isFinite(seconds) && seconds >= 0 ? { retryAfter: seconds * 1_000 } : {};
  const said = `${message} ${responseBody}`;
  if (status === 401 || /API_KEY_INVALID|invalid_api_key|authentication_error/.test(said))
    return { kind: "wrong_key", message };
  if (status === 404 || /model_not_found/.test(said) || (status === 403 && /model/i.test(said)))
    return { kind: "model_refused", message };
  if (status === 403) return { kind: "wrong_key", message };
  if (status === 408 || status === 429 || status >= 500) return { kind: "busy", message, ...retryAfter };
  // An unreadable response of status 200 was a truncated stream, so a retry may succeed.
  return { kind: status >= 400 ? "refused" : "busy", message };
}
