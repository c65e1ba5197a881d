import {
  callForObject,
  type ElementScene,
  type FrameSession,
  HeldObject,
  keepClosed,
  worldOf,
} from "../elements/page-world.ts";

/**
 * Names of the functions that return doubtful elements and register closed roots, by the script that reads the
 * document.
 */
const functions = {
  snapshot: { doubtful: "doubtfulElements", keep: "keepClosed" },
  content: { doubtful: "doubtfulOfContent", keep: "keepClosedOfContent" },
} as const;

/**
 * Queries the browser for closed shadow roots of the document's doubtful elements, and registers the roots with the
 * document's script. Returns whether any root was found.
 */
export async function findClosedRoots(
  scene: ElementScene,
  frame: FrameSession,
  reader: keyof typeof functions,
): Promise<boolean> {
  const { progress } = scene;
  const { cdp } = frame;
  const { doubtful, keep } = functions[reader];
  const { objectId } = await callForObject(scene, frame, doubtful);
  const world = worldOf(frame);
  if (objectId === undefined || world === undefined) return false;
  // Each call has its own group, so that releasing a group does not affect other frames in the same session.
  const objectGroup = `closed-roots-${objectId}`;
  try {
    const { result } = await progress.race(cdp.send("Runtime.getProperties", { objectId, ownProperties: true }));
    const held = result.flatMap(({ value }) => (value?.subtype === "node" && value.objectId ? [value.objectId] : []));
    const found = await Promise.all(
      held.map(async (host) => {
        const { node } = await progress.race(cdp.send("DOM.describeNode", { objectId: host }));
        const closed = node.shadowRoots?.find(({ shadowRootType }) => shadowRootType === "closed");
        if (!closed) return false;
        const { backendNodeId } = closed;
        const resolving = cdp.send("DOM.resolveNode", { backendNodeId, executionContextId: world, objectGroup });
        const { object } = await progress.race(resolving);
        if (object.objectId === undefined) return false;
        await keepClosed(scene, frame, keep, new HeldObject(host), new HeldObject(object.objectId));
        return true;
      }),
    );
    for (const each of held) cdp.send("Runtime.releaseObject", { objectId: each }).catch(() => undefined);
    return found.includes(true);
  } finally {
    cdp.send("Runtime.releaseObject", { objectId }).catch(() => undefined);
    cdp.send("Runtime.releaseObjectGroup", { objectGroup }).catch(() => undefined);
  }
}
