import type { CdpSession } from "../cdp/cdp-session.ts";
import { InputTally } from "./input-tally.ts";
import { Keyboard } from "./keyboard.ts";
import { Mouse } from "./mouse.ts";
import { TouchScreen } from "./touch-screen.ts";

/** What a page is driven with. It knows what is held, whoever holds it. */
export interface PageInput {
  readonly keyboard: Keyboard;
  readonly mouse: Mouse;
  readonly touchScreen: TouchScreen;
  /** What was sent to the page. */
  readonly tally: InputTally;
}

/** The part of our session of a page that input takes. */
type InputPort = Pick<CdpSession, "send" | "on">;

const inputs = new WeakMap<CdpSession, PageInput>();

/** Gives what a page is driven with, by our session of it: the same each time. */
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

/** Releases all that is held on a page. */
export function releaseAll({ keyboard, mouse, touchScreen }: PageInput): void {
  keyboard.cancel();
  mouse.cancel();
  touchScreen.cancel();
}
