import {
  callForObject,
  type ElementScene,
  type Frame,
  HeldObject,
  keepClosed,
  worldOf,
} from "../elements/page-world.ts";

/** Objects of one question are released together. */
const objectGroup = "closed-roots";

/**
 * Asks the browser for the closed shadow roots of the elements that a look has doubts about, and has the script of their
 * document look into them from now on. Says whether there are any.
 */
export async function findClosedRoots(scene: ElementScene, frame: Frame): Promise<boolean> {
  const { progress } = scene;
  const { cdp } = frame;
  const { objectId } = await callForObject(scene, frame, "doubtfulElements");
  const world = worldOf(frame);
  if (objectId === undefined || world === undefined) return false;
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
        await keepClosed(scene, frame, new HeldObject(host), new HeldObject(object.objectId));
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
