import type { ClientCommand, Params } from "./client-command.ts";

/** Maximum bytes of settings stored per client. */
const maxBytes = 2 ** 20;

interface SettingCommand {
  readonly method: string;
  /** JSON of the parameters. */
  readonly params: string;
  readonly sessionId: string | undefined;
}

/** Sends a command. Resolves with the browser's answer. */
type Send = (command: SettingCommand) => Promise<unknown>;

const online = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };

/**
 * Settings that keep a page from loading, running or receiving input, with the commands that undo them. `Fetch.disable`
 * also continues paused requests. Frozen visible pages, intercepted file choosers and paused animations are not
 * included, because pages remain usable with them (observed with Chromium 156).
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

/** Settings that a command implies until the client changes them. */
const implied: Readonly<Record<string, readonly [method: string, params: Params]>> = {
  "Debugger.enable": ["Debugger.setSkipAllPauses", { skip: false }],
};

/** Client settings that obstruct a person, undone while a person holds control. */
export class ClientSettings {
  readonly #send: Send;
  /** Recorded settings by session and method, most recent last. */
  readonly #made = new Map<string, SettingCommand>();
  #bytes = 0;
  #isUndone = false;

  constructor(send: Send) {
    this.#send = send;
  }

  /** Records a command before it is forwarded. Returns false if the stored settings would exceed 1 MiB. */
  note({ method, sessionId, params }: Pick<ClientCommand, "method" | "sessionId" | "params">): boolean {
    if (method.endsWith(".disable")) {
      // Disabling a domain resets its settings.
      const domain = method.slice(0, -"disable".length);
      this.#forget((made) => made.sessionId === sessionId && made.method.startsWith(domain));
    }
    const standing = implied[method];
    if (standing && !this.#made.has(keyOf(sessionId, standing[0])))
      return this.#keep({ method: standing[0], params: JSON.stringify(standing[1]), sessionId });
    if (undoing[method] === undefined) return true;
    return params.length <= maxBytes && this.#keep({ method, params: params.toString() || "{}", sessionId });
  }

  /** Removes the settings of a session that has ended. */
  forgetSession(sessionId: string): void {
    this.#forget((made) => made.sessionId === sessionId);
  }

  /** Undoes the settings. Resolves when the browser has answered. */
  async undo(): Promise<void> {
    if (this.#isUndone) return;
    this.#isUndone = true;
    const commands = [...this.#made.values()].flatMap(({ method, sessionId }) =>
      (undoing[method] ?? []).map(([undo, params]) => ({ method: undo, params: JSON.stringify(params), sessionId })),
    );
    await Promise.all(commands.map((command) => this.#send(command)));
  }

  /** Reapplies the settings in order. Resolves when the browser has answered. */
  async redo(): Promise<void> {
    if (!this.#isUndone) return;
    this.#isUndone = false;
    await Promise.all([...this.#made.values()].map((command) => this.#send(command)));
  }

  #keep(command: SettingCommand): boolean {
    const key = keyOf(command.sessionId, command.method);
    const earlier = this.#made.get(key);
    if (this.#bytes + weigh(command) - (earlier ? weigh(earlier) : 0) > maxBytes) return false;
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

/** Stored size: parameters plus a fixed overhead. */
const weigh = ({ params }: SettingCommand) => params.length + 256;
