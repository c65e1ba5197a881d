import { APICallError } from "ai";
import { FetchFault } from "../../platform/outgoing/fetch-fault.ts";

/** Why a call of a model came to nothing. */
export type ModelFaultKind =
  /** The provider does not take the key. */
  | "wrong_key"
  /** The provider has no such model, or not for this key. */
  | "model_refused"
  /** Its address does not answer. */
  | "unreachable"
  /** It has too much to do, or too much of ours. */
  | "busy"
  /** It takes the request for a wrong one. */
  | "refused";

/** What came of a call of a model that failed. */
export interface ModelFault {
  readonly kind: ModelFaultKind;
  /** What the provider said, in words for people. */
  readonly message: string;
  /** Milliseconds after which it may be asked again, where it says so. */
  readonly retryAfter?: number;
}

/** Characters of what a provider says that are shown. */
const longestMessage = 300;

/** Reads a failure of a call. What the provider says is shown without the key, which it may repeat. */
export function readModelFault(thrown: unknown, apiKey: string): ModelFault {
  const fault = kindOf(thrown);
  const message = fault.message.replaceAll(apiKey, "[key]").slice(0, longestMessage);
  return { ...fault, message };
}

function kindOf(thrown: unknown): ModelFault {
  const fault = [thrown, thrown instanceof Error ? thrown.cause : undefined].find((each) => each instanceof FetchFault);
  if (fault) return { kind: "unreachable", message: `the provider ${fault.message}` };
  if (!APICallError.isInstance(thrown)) return { kind: "busy", message: "the response was truncated or could not be read" };
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
  // An answer of 200 that cannot be read is that of a stream which was cut.
  return { kind: status >= 400 ? "refused" : "busy", message };
}
