import type { SecretVariable } from "../../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type Failure, fail, failFields } from "../../../src/platform/errors.ts";
import { normaliseHost } from "../../../src/platform/outgoing/address-rules.ts";
import { DomainList } from "../../../src/platform/outgoing/domain-list.ts";
import type { VariableUse } from "../../variables/variable-store.ts";
import {
  callForObject,
  callPage,
  childFrame,
  DocumentReplaced,
  type FrameSession,
  mainFrame,
} from "../elements/page-world.ts";
import { contentFrameIdOf, retryUntilTimeout } from "../elements/reach.ts";
import type { Scene } from "./scene.ts";

/**
 * A placeholder in a text. Typing replaces it with the secret's value, or with the current TOTP code if the placeholder
 * ends in `.totp}}`.
 */
interface SecretPart {
  readonly variable: SecretVariable;
  readonly isCode: boolean;
  /** The placeholder as written in the text. */
  readonly placeholder: string;
}

/** Literal text, or a placeholder. */
type Part = string | SecretPart;

const placeholderPattern = /(\{\{[A-Za-z_][A-Za-z0-9_]{0,63}(?:\.totp)?\}\})/;

/** Maximum depth of frames searched for the focus. */
const maxFrameDepth = 16;

/** Splits a text into literals and placeholders. Unknown names stay literal. */
export function splitPlaceholders(text: string, { variables }: VariableUse): Part[] {
  if (variables.length === 0) return [text];
  const parts = text.split(placeholderPattern).map((placeholder): Part => {
    const [, name, dot] = /^\{\{(\w+)(\.totp)?\}\}$/.exec(placeholder) ?? [];
    const variable = variables.find((each) => each.name === name);
    return variable ? { variable, isCode: dot !== undefined, placeholder } : placeholder;
  });
  return parts.filter((part) => part !== "");
}

/** Throws `validation-failed` if one of the secrets must not be typed into the focused frame's origin. */
export async function assertAllowedOrigin(scene: Scene, parts: readonly Part[]): Promise<void> {
  const { origin } = await findFocus(scene);
  for (const part of parts) if (typeof part !== "string") assertAllowed(part, origin);
}

/**
 * Inserts a secret at the focus. Key events are not used, because the surrounding page could move the focus to another
 * frame between two key events.
 */
export async function insertSecret(scene: Scene, part: SecretPart): Promise<void> {
  const { frame, origin } = await findFocus(scene);
  assertAllowed(part, origin);
  const { variable, isCode, placeholder } = part;
  const text = isCode ? scene.secrets.codeOf(variable) : variable.value;
  const isAccepted = await callPage(scene, frame, "insertSecretText", text, origin).catch((thrown: unknown) => {
    throw thrown instanceof DocumentReplaced ? documentReplacedFailure(placeholder) : thrown;
  });
  if (isAccepted === undefined) throw documentReplacedFailure(placeholder);
  if (!isAccepted)
    throw failFields("validation-failed", { "action.text": `no focused element accepts ${placeholder}` });
}

const documentReplacedFailure = (placeholder: string): Failure =>
  fail("conflict", {}, { detail: `the document changed before ${placeholder} was typed` });

/** Returns the focused frame and its document's origin. */
function findFocus(scene: Scene): Promise<{ readonly frame: FrameSession; readonly origin: string }> {
  return retryUntilTimeout(scene, async () => {
    let frame = mainFrame(scene);
    for (let depth = 0; depth < maxFrameDepth; depth += 1) {
      const { objectId } = await callForObject(scene, frame, "focusedElement");
      const frameId = objectId === undefined ? undefined : await contentFrameIdOf(scene, frame, objectId);
      if (frameId === undefined) break;
      frame = childFrame(scene, frameId);
    }
    return { value: { frame, origin: await callPage(scene, frame, "originHere") } };
  });
}

function assertAllowed({ variable: { name, domains }, placeholder }: SecretPart, origin: string): void {
  const host = URL.canParse(origin) ? normaliseHost(new URL(origin).hostname) : undefined;
  if (host !== undefined && new DomainList(domains).has(host)) return;
  const where = host === undefined ? "a document without an origin" : origin;
  const what = `${placeholder} is not typed into ${where}: ${name} is allowed on ${domains.join(", ")} only`;
  throw failFields("validation-failed", { "action.text": what });
}
