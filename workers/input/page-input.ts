import type { CdpSession } from "../cdp/cdp-session.ts";
import { InputTally } from "./input-tally.ts";
import { Keyboard } from "./keyboard.ts";
import { Mouse } from "./mouse.ts";
import { TouchScreen } from "./touch-screen.ts";

/**
 * Input devices of a page. All senders of input share the devices, so that the devices know all held keys, buttons and
 * fingers.
 */
export interface PageInput {
  readonly keyboard: Keyboard;
  readonly mouse: Mouse;
  readonly touchScreen: TouchScreen;
  /** Counters of the input sent. */
  readonly tally: InputTally;
}

/** The methods of a page's session that input devices use. */
type InputPort = Pick<CdpSession, "send" | "on">;

const inputs = new WeakMap<CdpSession, PageInput>();

/** Returns the input devices of a page's session. Repeated calls return the same devices. */
export function inputOf(cdp: CdpSession): PageInput {
  const known = inputs.get(cdp);
  if (known) return known;
  const tally = new InputTally();
  const port: InputPort = {
    on: (event, listener) => cdp.on(event, listener),
    send: (method, params) => tally.follow(cdp.send(method, params)),
  };
  const input = { keyboard: new Keyboard(port), mouse: new Mouse(port), touchScreen: new TouchScreen(port), tally };
  inputs.set(cdp, input);
  return input;
}

/** Releases all keys, buttons and fingers held on a page. */
export function releaseAll({ keyboard, mouse, touchScreen }: PageInput): void {
  keyboard.cancel();
  mouse.cancel();
  touchScreen.cancel();
}
