import {
  type Composition,
  type InputEvent,
  type KeyDown,
  type KeyUp,
  type Touch,
  TouchPhase,
} from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { MouseButton } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { findKey, type Key } from "./keys.ts";
import type { Button } from "./mouse.ts";
import type { PageInput } from "./page-input.ts";
import type { TouchKind } from "./touch-screen.ts";

/**
 * Sends an input event to a page. Resolves when the page has handled the event. Returns undefined for viewport and
 * unknown events.
 */
export function dispatchInput(
  { keyboard, mouse, touchScreen }: PageInput,
  event: InputEvent["event"],
): Promise<unknown> | undefined {
  switch (event.case) {
    case "pointerMove":
      return mouse.move(event.value);
    case "pointerDown":
      return mouse.down(buttonOf(event.value.button), event.value.clickCount ?? 1, event.value);
    case "pointerUp":
      return mouse.up(event.value.clickCount ?? 1, buttonOf(event.value.button), event.value);
    case "wheel":
      return mouse.dispatchWheel(event.value, { x: event.value.dx, y: event.value.dy });
    case "keyDown":
      return keyboard.down(keyOf(event.value), event.value.key);
    case "keyUp":
      return keyboard.up(keyOf(event.value), event.value.key);
    case "text":
    case "paste":
      return keyboard.insert(event.value.text);
    case "composition":
      return compose(keyboard, event.value);
    case "touch":
      return touch(touchScreen, event.value);
    case "viewport":
    case undefined:
      return undefined;
    default:
      return event satisfies never;
  }
}

function compose(keyboard: PageInput["keyboard"], { text, selectionStart, selectionEnd, done }: Composition) {
  return done ? keyboard.insert(text) : keyboard.setComposition(text, selectionStart, selectionEnd);
}

const touchKinds: ReadonlyMap<TouchPhase, TouchKind> = new Map([
  [TouchPhase.START, "touchStart"],
  [TouchPhase.MOVE, "touchMove"],
  [TouchPhase.END, "touchEnd"],
] as const);

function touch(screen: PageInput["touchScreen"], { phase, points }: Touch): Promise<unknown> {
  const fingers = points.map(({ id, x, y }) => ({ id, x, y }));
  const kind = touchKinds.get(phase) ?? "touchCancel";
  return screen.touch(kind, kind === "touchCancel" ? [] : fingers);
}

/** Returns the key of an event. If the US layout has neither its code nor its key value, its `keyCode` is 0. */
function keyOf({ key, code = "", location }: KeyDown | KeyUp): Key {
  const known = findKey(code)?.key ?? findKey(key)?.key;
  const keyCode = known?.keyCode ?? 0;
  return {
    code: code || known?.code || key,
    plain: key,
    shifted: key,
    keyCode,
    location: location ?? known?.location ?? 0,
  };
}

function buttonOf(button: MouseButton): Button {
  if (button === MouseButton.RIGHT) return "right";
  return button === MouseButton.MIDDLE ? "middle" : "left";
}
