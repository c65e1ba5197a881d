import type { Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { interrupt, waitForLimit } from "./interruptions.ts";
import { type ApiProblem, problemOf } from "./problem.ts";
import { accessToken, markLoggedOut } from "./session-login.ts";

/** Services whose methods need no login. */
const isPublic = ({ service, method }: UnaryRequest | StreamRequest): boolean =>
  (service.typeName === "pilothouse.v1.AuthService" && method.name !== "LogOut") ||
  method.name === "GetCurrentLegal" ||
  ["ConfirmEmailChange", "UndoEmailChange", "RestoreAccount"].includes(method.name);

/** Longest `Retry-After` after which a request is retried automatically, in seconds. */
const maxRetryAfterSeconds = 60;

/** Resolves with true if the request may succeed now. */
async function recover({ slug, extensions, retryAfterSeconds }: ApiProblem): Promise<boolean> {
  switch (slug) {
    case "expired-key":
      return (await accessToken(true)) !== undefined;
    case "revoked-key":
    case "invalid-key":
      if ((await accessToken(true)) !== undefined) return true;
      markLoggedOut();
      return false;
    case "mfa-step-up-required":
      return interrupt("step-up", extensions);
    case "legal-acceptance-required":
      return interrupt("terms", extensions);
    case "rate-limited":
      if (retryAfterSeconds === undefined || retryAfterSeconds > maxRetryAfterSeconds) return false;
      await waitForLimit(retryAfterSeconds);
      return true;
    default:
      return false;
  }
}

const authenticate: Interceptor = (next) => async (request) => {
  if (isPublic(request)) return next(request);
  const send = async () => {
    const token = await accessToken();
    if (token !== undefined) request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  const handled = new Set<string>();
  for (;;) {
    try {
      return await send();
    } catch (error) {
      const problem = problemOf(error);
      // The messages of a stream cannot be sent again. Each problem is handled once.
      if (request.stream || handled.has(problem.slug) || !(await recover(problem))) throw error;
      handled.add(problem.slug);
    }
  }
};

/** Calls the API of the service that serves the console. */
export const transport = createConnectTransport({
  baseUrl: location.origin,
  useBinaryFormat: true,
  interceptors: [authenticate],
});
