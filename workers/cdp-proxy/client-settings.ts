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

/** Client settings that keep a person from using the page, and that are undone while a person holds control. */
export class ClientSettings {
  readonly #send: Send;
  /** Recorded settings by session and method, most recent last. */
  readonly #recorded = new Map<string, SettingCommand>();
  #bytes = 0;
  #isUndone = false;

  constructor(send: Send) {
    this.#send = send;
  }

  /**
   * Records a setting that a command changes, before the command is forwarded. Returns false if the stored settings
   * would exceed 1 MiB.
   */
  record({ method, sessionId, params }: Pick<ClientCommand, "method" | "sessionId" | "params">): boolean {
    if (method.endsWith(".disable")) {
      // Disabling a domain resets its settings.
      const domain = method.slice(0, -"disable".length);
      this.#forget((setting) => setting.sessionId === sessionId && setting.method.startsWith(domain));
    }
    const impliedSetting = implied[method];
    if (impliedSetting && !this.#recorded.has(keyOf(sessionId, impliedSetting[0])))
      return this.#keep({ method: impliedSetting[0], params: JSON.stringify(impliedSetting[1]), sessionId });
    if (undoing[method] === undefined) return true;
    return params.length <= maxBytes && this.#keep({ method, params: params.toString() || "{}", sessionId });
  }

  /** Removes the settings of a session that has ended. */
  forgetSession(sessionId: string): void {
    this.#forget((setting) => setting.sessionId === sessionId);
  }

  /** Undoes the settings. Resolves when the browser has answered. */
  async undo(): Promise<void> {
    if (this.#isUndone) return;
    this.#isUndone = true;
    const commands = [...this.#recorded.values()].flatMap(({ method, sessionId }) =>
      (undoing[method] ?? []).map(([undo, params]) => ({ method: undo, params: JSON.stringify(params), sessionId })),
    );
    await Promise.all(commands.map((command) => this.#send(command)));
  }

  /** Reapplies the settings in order. Resolves when the browser has answered. */
  async redo(): Promise<void> {
    if (!this.#isUndone) return;
    this.#isUndone = false;
    await Promise.all([...this.#recorded.values()].map((command) => this.#send(command)));
  }

  #keep(command: SettingCommand): boolean {
    const key = keyOf(command.sessionId, command.method);
    const previous = this.#recorded.get(key);
    if (this.#bytes + sizeOf(command) - (previous ? sizeOf(previous) : 0) > maxBytes) return false;
    this.#drop(key);
    this.#recorded.set(key, command);
    this.#bytes += sizeOf(command);
    return true;
  }

  #forget(matches: (setting: SettingCommand) => boolean): void {
    for (const [key, setting] of this.#recorded) if (matches(setting)) this.#drop(key);
  }

  #drop(key: string): void {
    const setting = this.#recorded.get(key);
    if (!setting) return;
    this.#bytes -= sizeOf(setting);
    this.#recorded.delete(key);
  }
}

const keyOf = (sessionId: string | undefined, method: string) => `${sessionId} ${method}`;

/** Counted size of a setting: its parameters plus a fixed overhead. */
const sizeOf = ({ params }: SettingCommand) => params.length + 256;
