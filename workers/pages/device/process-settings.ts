import type { OwnTarget, Targets } from "../../cdp/targets.ts";
import type { Device } from "./device.ts";

type Session = OwnTarget["session"];

/** Applies a device's setting through one of our CDP sessions. Without a device, resets the setting. */
type Send = (session: Session, device: Device | undefined) => Promise<unknown>;

/** Settings that only one CDP session per renderer process can override, by command. */
const settings: ReadonlyMap<string, Send> = new Map<string, Send>([
  [
    "Emulation.setLocaleOverride",
    (session, device) => session.send("Emulation.setLocaleOverride", { locale: device?.locale ?? "" }),
  ],
  [
    "Emulation.setTimezoneOverride",
    (session, device) => session.send("Emulation.setTimezoneOverride", { timezoneId: device?.timezone ?? "" }),
  ],
]);

/** Applies locale and time zone to a browser's pages, and yields to CDP clients that override them. */
export interface ProcessSettings {
  /** Whether a command sets one of these settings. */
  has(method: string): boolean;
  /** Resets our setting on a target, so that a client's session can apply its own setting. */
  release(method: string, targetId: string): void;
  /** Resets our setting on all targets that may share the target's process. */
  releaseAll(method: string, targetId: string): void;
  /** Reapplies our settings to one target or to all, except where a CDP client's session has set its own. */
  restore(targetId?: string): void;
}

/** Creates the settings of a browser. `device` returns the browser's current device. */
export function createProcessSettings(targets: Targets, device: () => Device): ProcessSettings {
  const documents = () => [...targets.own].filter(({ info }) => info.type === "page" || info.type === "iframe");
  const send = (make: Send | undefined, on: readonly OwnTarget[], wanted: Device | undefined): void => {
    // Errors are ignored: the command fails if another session's setting is in effect.
    for (const { session } of on) make?.(session, wanted).catch(() => undefined);
  };
  return {
    has: (method) => settings.has(method),
    release(method, targetId) {
      const own = documents().filter(({ info }) => info.targetId === targetId);
      send(settings.get(method), own, undefined);
    },
    releaseAll(method, targetId) {
      const all = documents();
      const context = all.find(({ info }) => info.targetId === targetId)?.info.browserContextId;
      // Targets of other browser contexts are left out, because browser contexts never share a process.
      const near = all.filter(({ info }) => info.browserContextId === context);
      send(settings.get(method), near, undefined);
    },
    restore(targetId) {
      const own = documents().filter(({ info }) => targetId === undefined || info.targetId === targetId);
      for (const make of settings.values()) send(make, own, device());
    },
  };
}
