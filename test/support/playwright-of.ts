import { type BrowserContext, type ConnectOverCDPTransport, chromium } from "playwright";
import type { ConnectionUser } from "../../workers/cdp/connection-user.ts";
import type { BrowserProcess } from "../../workers/isolation/browser-process.ts";
import type { ConnectionMessage } from "../cdp/connection-message.ts";

/** Connects Playwright to a launched browser over a shared pipe, and returns the default context. */
export async function playwrightOf({ connection, targets }: BrowserProcess): Promise<BrowserContext> {
  const transport = new PlaywrightTransport(await connection.attach(targets));
  const browser = await chromium.connectOverCDP(transport, { isLocal: true, noDefaults: true });
  const [context] = browser.contexts();
  if (!context) throw new Error("the browser has no context");
  return context;
}

/** Connection to the browser in Playwright's transport interface. */
class PlaywrightTransport implements ConnectOverCDPTransport {
  onmessage?: (message: object) => void;
  onclose?: (reason?: string) => void;
  readonly #user: ConnectionUser;

  constructor(user: ConnectionUser) {
    this.#user = user;
    user.onevent = (_event, members, sessionId) => this.#deliver(members, { sessionId });
    user.onclose = () => this.onclose?.();
  }

  send({ id, method = "", params, sessionId }: ConnectionMessage): void {
    const command = { method, params: params === undefined ? "" : JSON.stringify(params), sessionId };
    this.#user.send(command, (answer) => {
      const members =
        "bytes" in answer ? answer.bytes : Buffer.from(`"error":${JSON.stringify({ message: answer.failure })}`);
      this.#deliver(members, { id, sessionId });
    });
  }

  close(): void {
    void this.#user.close();
  }

  /** Delivers each message in its own task, because Playwright subscribes to events only after a response. */
  #deliver(members: Buffer, { id, sessionId }: { id?: number | undefined; sessionId: string | undefined }): void {
    const message = JSON.parse(`{${members.toString()}}`);
    setImmediate(() =>
      this.onmessage?.({ ...message, ...(id !== undefined && { id }), ...(sessionId !== undefined && { sessionId }) }),
    );
  }
}
