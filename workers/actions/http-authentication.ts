import type { CDPSession } from "playwright-core";

/** What the browser tells of an answer that it holds back for us. */
interface PausedAnswer {
  readonly requestId: string;
  readonly responseStatusCode?: number;
  readonly responseHeaders?: { readonly name: string; readonly value: string }[];
}

/**
 * Runs a navigation in which no document asks for a name and a password: a 401 arrives as a page like any other.
 * Cancelling the question (`Fetch.continueWithAuth`) is not enough, full Chromium then shows its own error page.
 */
export async function withAuthenticationRefused<Value>(cdp: CDPSession, work: () => Promise<Value>): Promise<Value> {
  const onPaused = (answer: PausedAnswer) => {
    // The page may have gone meanwhile, and its answer with it.
    passOn(cdp, answer).catch(() => undefined);
  };
  cdp.on("Fetch.requestPaused", onPaused);
  try {
    const pattern = { urlPattern: "*", resourceType: "Document", requestStage: "Response" } as const;
    await cdp.send("Fetch.enable", { patterns: [pattern] });
    return await work();
  } finally {
    cdp.off("Fetch.requestPaused", onPaused);
    // What is paused at this moment goes on by itself; a page that has gone needs nothing.
    cdp.send("Fetch.disable").catch(() => undefined);
  }
}

async function passOn(cdp: CDPSession, answer: PausedAnswer): Promise<void> {
  const { requestId, responseStatusCode, responseHeaders = [] } = answer;
  if (responseStatusCode !== 401) {
    await cdp.send("Fetch.continueRequest", { requestId });
    return;
  }
  const { body, base64Encoded } = await cdp.send("Fetch.getResponseBody", { requestId });
  await cdp.send("Fetch.fulfillRequest", {
    requestId,
    responseCode: responseStatusCode,
    responseHeaders: responseHeaders.filter(({ name }) => name.toLowerCase() !== "www-authenticate"),
    body: base64Encoded ? body : Buffer.from(body).toString("base64"),
  });
}
