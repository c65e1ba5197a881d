import type { ClientCommand, Params } from "./client-command.ts";

/** How many bytes of settings are remembered of a client. */
const mostBytes = 2 ** 20;

interface SettingCommand {
  readonly method: string;
  /** The parameters, as JSON. */
  readonly params: string;
  readonly sessionId: string | undefined;
}

/** Sends a command; resolves when the browser has answered it. */
type Send = (command: SettingCommand) => Promise<unknown>;

const online = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };

/**
 * Settings under which a page does not load, does not run, or does not take a person's input, and what takes them back. A
 * request that was paused goes on with `Fetch.disable`. Not among them, since a page works with it (seen with 156): a frozen
 * page that is shown, an intercepted file chooser, animations that stand still.
 */
const undoing: Readonly<Record<string, readonly (readonly [method: string, params: Params])[]>> = {
  "Debugger.setSkipAllPauses": [
    ["Debugger.setSkipAllPauses", { skip: true }],
    ["Debugger.resume", {}],
  ],
  "Emulation.setCPUThrottlingRate": [["Emulation.setCPUThrottlingRate", { rate: 1 }]],
  "Emulation.setScriptExecutionDisabled": [["Emulation.setScriptExecutionDisabled", { value: false }]],
  "Fetch.enable": [["Fetch.disable", {}]],
  "Input.setIgnoreInputEvents": [["Input.setIgnoreInputEvents", { ignore: false }]],
  "Input.setInterceptDrags": [["Input.setInterceptDrags", { enabled: false }]],
  "Network.emulateNetworkConditions": [["Network.emulateNetworkConditions", online]],
  "Network.emulateNetworkConditionsByRule": [
    ["Network.emulateNetworkConditionsByRule", { offline: false, matchedNetworkConditions: [] }],
  ],
  "Network.overrideNetworkState": [["Network.overrideNetworkState", online]],
  "Network.setBlockedURLs": [["Network.setBlockedURLs", { urls: [] }]],
  "Overlay.setInspectMode": [["Overlay.setInspectMode", { mode: "none", highlightConfig: {} }]],
};

/** Settings that stand with a command until the client changes them. */
const implied: Readonly<Record<string, readonly [method: string, params: Params]>> = {
  "Debugger.enable": ["Debugger.setSkipAllPauses", { skip: false }],
};

/** What a client has set that a person cannot do with: it is taken back for as long as a person holds control. */
export class ClientSettings {
  readonly #send: Send;
  /** By session and method, those that were made last at the end. */
  readonly #made = new Map<string, SettingCommand>();
  #bytes = 0;
  #isUndone = false;

  constructor(send: Send) {
    this.#send = send;
  }

  /** Takes note of a command that is to be passed on; returns false if there is no room to remember it. */
  note({ method, sessionId, params }: Pick<ClientCommand, "method" | "sessionId" | "params">): boolean {
    if (method.endsWith(".disable")) {
      // Whatever is set by a domain is gone when it is disabled.
      const domain = method.slice(0, -"disable".length);
      this.#forget((made) => made.sessionId === sessionId && made.method.startsWith(domain));
    }
    const standing = implied[method];
    if (standing && !this.#made.has(keyOf(sessionId, standing[0])))
      return this.#keep({ method: standing[0], params: JSON.stringify(standing[1]), sessionId });
    if (undoing[method] === undefined) return true;
    return params.length <= mostBytes && this.#keep({ method, params: params.toString() || "{}", sessionId });
  }

  /** Forgets a session that has ended. */
  forgetSession(sessionId: string): void {
    this.#forget((made) => made.sessionId === sessionId);
  }

  /** Takes the settings back; resolves when the browser has. */
  async undo(): Promise<void> {
    if (this.#isUndone) return;
    this.#isUndone = true;
    const commands = [...this.#made.values()].flatMap(({ method, sessionId }) =>
      (undoing[method] ?? []).map(([undo, params]) => ({ method: undo, params: JSON.stringify(params), sessionId })),
    );
    await Promise.all(commands.map((command) => this.#send(command)));
  }

  /** Makes the settings again, in their order; resolves when the browser has. */
  async redo(): Promise<void> {
    if (!this.#isUndone) return;
    this.#isUndone = false;
    await Promise.all([...this.#made.values()].map((command) => this.#send(command)));
  }

  #keep(command: SettingCommand): boolean {
    const key = keyOf(command.sessionId, command.method);
    const earlier = this.#made.get(key);
    if (this.#bytes + weigh(command) - (earlier ? weigh(earlier) : 0) > mostBytes) return false;
    this.#drop(key);
    this.#made.set(key, command);
    this.#bytes += weigh(command);
    return true;
  }

  #forget(isMeant: (made: SettingCommand) => boolean): void {
    for (const [key, made] of this.#made) if (isMeant(made)) this.#drop(key);
  }

  #drop(key: string): void {
    const made = this.#made.get(key);
    if (!made) return;
    this.#bytes -= weigh(made);
    this.#made.delete(key);
  }
}

const keyOf = (sessionId: string | undefined, method: string) => `${sessionId} ${method}`;

/** With what is kept beside the parameters. */
const weigh = ({ params }: SettingCommand) => params.length + 256;
