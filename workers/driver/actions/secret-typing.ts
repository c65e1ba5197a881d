import type { SecretVariable } from "../../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type Failure, fail, failFields } from "../../../src/platform/errors.ts";
import { normaliseHost } from "../../../src/platform/outgoing/address-rules.ts";
import { DomainList } from "../../../src/platform/outgoing/domain-list.ts";
import type { VariableUse } from "../../variables/variable-store.ts";
import {
  callForObject,
  callPage,
  childFrame,
  DocumentLeft,
  type FrameSession,
  mainFrame,
} from "../elements/page-world.ts";
import { frameHeldBy, persist } from "../elements/reach.ts";
import type { Scene } from "./scene.ts";

/** A placeholder in a text: stands for a secret's value, or for the current TOTP code of its seed. */
interface SecretPart {
  readonly variable: SecretVariable;
  readonly isCode: boolean;
  /** The placeholder as written in the text. */
  readonly place: string;
}

/** Literal text, or a placeholder. */
type Part = string | SecretPart;

const places = /(\{\{[A-Za-z_][A-Za-z0-9_]{0,63}(?:\.totp)?\}\})/;

/** Maximum depth of frames searched for the focus. */
const deepest = 16;

/** Splits a text into literals and placeholders. Unknown names stay literal. */
export function readParts(text: string, { variables }: VariableUse): Part[] {
  if (variables.length === 0) return [text];
  const parts = text.split(places).map((place): Part => {
    const [, name, dot] = /^\{\{(\w+)(\.totp)?\}\}$/.exec(place) ?? [];
    const variable = variables.find((each) => each.name === name);
    return variable ? { variable, isCode: dot !== undefined, place } : place;
  });
  return parts.filter((part) => part !== "");
}

/** Throws if the focused frame's origin is not allowed for one of the secrets. */
export async function assertTakes(scene: Scene, parts: readonly Part[]): Promise<void> {
  const { origin } = await focusOf(scene);
  for (const part of parts) if (typeof part !== "string") assertAllowed(part, origin);
}

/**
 * Inserts a secret at the focus. Key events are not used: the surrounding page could redirect some into another frame.
 */
export async function putSecret(scene: Scene, part: SecretPart): Promise<void> {
  const { frame, origin } = await focusOf(scene);
  assertAllowed(part, origin);
  const { variable, isCode, place } = part;
  const text = isCode ? scene.secrets.codeOf(variable) : variable.value;
  const isTaken = await callPage(scene, frame, "putText", text, origin).catch((thrown: unknown) => {
    throw thrown instanceof DocumentLeft ? left(place) : thrown;
  });
  if (isTaken === undefined) throw left(place);
  if (!isTaken) throw failFields("validation-failed", { "action.text": `no focused element accepts ${place}` });
}

const left = (place: string): Failure =>
  fail("conflict", {}, { detail: `the document changed before ${place} was typed` });

/** Returns the focused frame and its document's origin. */
function focusOf(scene: Scene): Promise<{ readonly frame: FrameSession; readonly origin: string }> {
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
  const what = `${place} is not typed into ${where}: ${name} is allowed on ${domains.join(", ")} only`;
  throw failFields("validation-failed", { "action.text": what });
}
