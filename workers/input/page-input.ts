import type { CdpSession } from "../wire/cdp-session.ts";
import { Keyboard } from "./keyboard.ts";
import { Mouse } from "./mouse.ts";
import { TouchScreen } from "./touch-screen.ts";

/** What a page is driven with. It knows what is held, whoever holds it. */
export interface PageInput {
  readonly keyboard: Keyboard;
  readonly mouse: Mouse;
  readonly touchScreen: TouchScreen;
}

const inputs = new WeakMap<CdpSession, PageInput>();

/** Gives what a page is driven with, by our session of it: the same each time. */
export function inputOf(cdp: CdpSession): PageInput {
  const known = inputs.get(cdp);
  if (known) return known;
  const input = { keyboard: new Keyboard(cdp), mouse: new Mouse(cdp), touchScreen: new TouchScreen(cdp) };
  inputs.set(cdp, input);
  return input;
}
