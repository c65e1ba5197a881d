import type { OwnTarget, Targets } from "../../cdp/targets.ts";
import type { Device } from "./device.ts";

type Session = OwnTarget["session"];

/** Sends a setting to a session of ours; without a device it is taken back. */
type Send = (session: Session, device: Device | undefined) => Promise<unknown>;

/** Settings that a renderer process takes from one session at a time, by the commands that make them. */
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

/** Locale and time zone of a browser's pages, which clients may want to set for themselves. */
export interface ProcessSettings {
  /** Whether a command makes one of them. */
  has(method: string): boolean;
  /** Takes ours back from a target, so that another session can make its own there. */
  release(method: string, targetId: string): void;
  /** Takes ours back from all targets that may share the target's process. */
  releaseAll(method: string, targetId: string): void;
  /** Makes ours again for a target, or for all, unless another session has made its own. */
  restore(targetId?: string): void;
}

/** Creates the settings of a browser that is to be a device. */
export function createProcessSettings(targets: Targets, device: () => Device): ProcessSettings {
  const documents = () => [...targets.own].filter(({ info }) => info.type === "page" || info.type === "iframe");
  const send = (make: Send | undefined, on: readonly OwnTarget[], wanted: Device | undefined): void => {
    // It is refused where another session's is in effect.
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
      // Contexts share no process.
      const near = all.filter(({ info }) => info.browserContextId === context);
      send(settings.get(method), near, undefined);
    },
    restore(targetId) {
      const own = documents().filter(({ info }) => targetId === undefined || info.targetId === targetId);
      for (const make of settings.values()) send(make, own, device());
    },
  };
}
