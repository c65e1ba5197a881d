import type { Type } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { failFields } from "../../../src/platform/errors.ts";
import type { Reception } from "../../injected/page-receive.ts";
import type { Locator } from "../elements/locator.ts";
import { callPage } from "../elements/page-world.ts";
import { reachElement } from "../elements/reach.ts";
import type { Scene } from "./scene.ts";

/**
 * Prepares an element for key input once the element accepts text. Returns `set` if no keys are needed, because the
 * control (such as a date input) holds a single value, which was set to the text.
 */
export async function prepareForText(
  scene: Scene,
  locator: Locator,
  { text, clear }: Pick<Type, "text" | "clear">,
): Promise<"ready" | "set"> {
  const reception = await reachElement(scene, locator, ({ inner }, timeoutMs) =>
    callPage(scene, inner, "receiveText", { selector: locator.selector, timeoutMs }, { text, clear }),
  );
  return assertAccepted(reception);
}

function assertAccepted(reception: Reception): "ready" | "set" {
  switch (reception.outcome) {
    case "acceptsNone":
      throw failFields("validation-failed", { "action.selector": `${reception.type} does not accept text` });
    case "refused":
      throw failFields("validation-failed", {
        "action.text": `is not a valid value of an input of type ${reception.type}`,
      });
    default:
      return reception.outcome;
  }
}
