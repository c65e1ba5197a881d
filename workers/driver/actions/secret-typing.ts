import type { SecretVariable } from "../../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type Failure, fail, failFields } from "../../../src/platform/errors.ts";
import { normaliseHost } from "../../../src/platform/outgoing/address-rules.ts";
import { DomainList } from "../../../src/platform/outgoing/domain-list.ts";
import type { VariableUse } from "../../variables/variable-book.ts";
import { callForObject, callPage, childFrame, DocumentLeft, type Frame, mainFrame } from "../elements/page-world.ts";
import { frameHeldBy, persist } from "../elements/reach.ts";
import type { Scene } from "./scene.ts";

/** A place in a text that a secret takes: its value, or the code of the seed that it is. */
interface SecretPart {
  readonly variable: SecretVariable;
  readonly isCode: boolean;
  /** As the text has it. */
  readonly place: string;
}

/** What is typed as it stands, and what is put in place of a name. */
type Part = string | SecretPart;

const places = /(\{\{[A-Za-z_][A-Za-z0-9_]{0,63}(?:\.totp)?\}\})/;

/** How many frames deep the focus is followed. */
const deepest = 16;

/** Reads a text that may have places for secrets. What names none of them is typed as it stands. */
export function readParts(text: string, { variables }: VariableUse): Part[] {
  if (variables.length === 0) return [text];
  const parts = text.split(places).map((place): Part => {
    const [, name, dot] = /^\{\{(\w+)(\.totp)?\}\}$/.exec(place) ?? [];
    const variable = variables.find((each) => each.name === name);
    return variable ? { variable, isCode: dot !== undefined, place } : place;
  });
  return parts.filter((part) => part !== "");
}

/** Throws where the focus is in a frame into which one of the secrets of a text is not typed. */
export async function assertTakes(scene: Scene, parts: readonly Part[]): Promise<void> {
  const { origin } = await focusOf(scene);
  for (const part of parts) if (typeof part !== "string") assertAllowed(part, origin);
}

/** Puts a secret where the focus is; not by keys, of which the page around could lead some into another frame. */
export async function putSecret(scene: Scene, part: SecretPart): Promise<void> {
  const { frame, origin } = await focusOf(scene);
  assertAllowed(part, origin);
  const { variable, isCode, place } = part;
  const text = isCode ? scene.secrets.codeOf(variable) : variable.value;
  const isTaken = await callPage(scene, frame, "putText", text, origin).catch((thrown: unknown) => {
    throw thrown instanceof DocumentLeft ? left(place) : thrown;
  });
  if (isTaken === undefined) throw left(place);
  if (!isTaken) throw failFields("validation-failed", { "action.text": `nothing has the focus that takes ${place}` });
}

const left = (place: string): Failure =>
  fail("conflict", {}, { detail: `the page shows another document than that into which ${place} was to be typed` });

/** The frame that has the focus, whoever has put it there, and the origin of its document. */
function focusOf(scene: Scene): Promise<{ readonly frame: Frame; readonly origin: string }> {
  return persist(scene, async () => {
    let frame = mainFrame(scene);
    for (let depth = 0; depth < deepest; depth += 1) {
      const { objectId } = await callForObject(scene, frame, "focusedElement");
      const frameId = objectId === undefined ? undefined : await frameHeldBy(scene, frame, objectId);
      if (frameId === undefined) break;
      frame = childFrame(scene, frameId);
    }
    return { value: { frame, origin: await callPage(scene, frame, "originHere") } };
  });
}

function assertAllowed({ variable: { name, domains }, place }: SecretPart, origin: string): void {
  const host = URL.canParse(origin) ? normaliseHost(new URL(origin).hostname) : undefined;
  if (host !== undefined && new DomainList(domains).has(host)) return;
  const where = host === undefined ? "a document without an origin" : origin;
  const what = `${place} is not typed into ${where}: ${name} is for ${domains.join(", ")} alone`;
  throw failFields("validation-failed", { "action.text": what });
}
