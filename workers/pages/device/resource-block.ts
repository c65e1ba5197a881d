import type { Block } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { BlockKind } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import type { CdpSession } from "../../cdp/cdp-session.ts";

/** CDP names of the resource types that can be blocked. Other kinds of `Block`, such as ads, are blocked by host. */
const resourceTypes = {
  image: "Image",
  media: "Media",
  font: "Font",
  stylesheet: "Stylesheet",
  script: "Script",
} as const;

export type BlockedType = (typeof resourceTypes)[keyof typeof resourceTypes];

const typeOf: ReadonlyMap<BlockKind, BlockedType> = new Map([
  [BlockKind.IMAGE, resourceTypes.image],
  [BlockKind.MEDIA, resourceTypes.media],
  [BlockKind.FONT, resourceTypes.font],
  [BlockKind.STYLESHEET, resourceTypes.stylesheet],
  [BlockKind.SCRIPT, resourceTypes.script],
]);

/** Returns the resource types that a session blocks. */
export function blockedTypesOf(block: Block | undefined): BlockedType[] {
  return (block?.kinds ?? []).flatMap((kind) => typeOf.get(kind) ?? []);
}

const blocking = new WeakSet<CdpSession>();

/**
 * Blocks resources of a page or frame. Requests of other types are not intercepted, which saves their round trip to the
 * worker. `onBlocked` is called with the kind of each blocked request.
 */
export function blockResources(
  session: CdpSession,
  types: readonly BlockedType[],
  onBlocked: (kind: string) => void,
): Promise<unknown>[] {
  if (types.length === 0) return [];
  if (!blocking.has(session)) {
    blocking.add(session);
    session.on("Fetch.requestPaused", ({ requestId, resourceType }) => {
      onBlocked(resourceType.toLowerCase());
      session.send("Fetch.failRequest", { requestId, errorReason: "BlockedByClient" }).catch(() => undefined);
    });
  }
  return [session.send("Fetch.enable", { patterns: types.map((resourceType) => ({ resourceType })) })];
}
