import type { Type } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../../src/platform/errors.ts";
import type { Reception } from "../../injected/page-receive.ts";
import type { Aim } from "../elements/aim.ts";
import { callPage } from "../elements/page-world.ts";
import { reachElement } from "../elements/reach.ts";
import type { Scene } from "./scene.ts";

/**
 * Prepares an element for key input once the element accepts text. Returns `set` if the control holds a single value,
 * which was set to the text.
 */
export async function readyForText(
  scene: Scene,
  aim: Aim,
  { text, clear }: Pick<Type, "text" | "clear">,
): Promise<"ready" | "set"> {
  const reception = await reachElement(scene, aim, ({ inner }, timeoutMs) =>
    callPage(scene, inner, "receiveText", { selector: aim.selector, timeoutMs }, { text, clear }),
  );
  return settle(reception);
}

function settle(reception: Reception): "ready" | "set" {
  switch (reception.outcome) {
    case "takesNone":
      throw failFields("validation-failed", { "action.selector": `${reception.type} takes no text` });
    case "refused":
      throw failFields("validation-failed", { "action.text": `is not a value of an input of type ${reception.type}` });
    default:
      return reception.outcome;
  }
}
