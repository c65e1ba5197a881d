import { within } from "../../../src/platform/deadline.ts";
import { tooLong } from "../../cdp/cdp-connection.ts";
import { messageOf } from "../actions/browser-failure.ts";
import {
  callForObject,
  callPage,
  type ElementScene,
  type FrameSession,
  HeldObject,
  worldOf,
} from "../elements/page-world.ts";

/** Types of events that a click, tap or drag causes. Elements that listen for them react to presses. */
const pressTypes =
  /^(?:click|dblclick|auxclick|contextmenu|mousedown|mouseup|pointerdown|pointerup|touchstart|touchend|dragstart)$/;

/**
 * Maximum number of elements resolved per snapshot, about 0.1 ms each. Later snapshots resolve the remaining elements.
 */
const maxNew = 600;

/**
 * Milliseconds after which a query counts as slow. From the start of a slow query until ten times its duration later,
 * no other query starts.
 */
const slowMs = 100;

/** Known listeners of a document. */
interface KnownListeners {
  /** Remote object id of the document in the page's own world. */
  readonly root: string;
  /** Backend ids of the elements that were registered with the document's script. */
  readonly nodes: Set<number>;
}

/** State of the queries of a frame's document. */
interface State {
  readonly world: number;
  /** Undefined for a document with too many listeners, which is not queried again. */
  readonly known: KnownListeners | undefined;
  /** Earliest time of the next query, by `performance.now()`. Infinite while a query runs. */
  nextAt: number;
  /** Whether the last query registered elements. */
  isChanging: boolean;
}

const states = new WeakMap<FrameSession["cdp"], Map<string, State>>();

/**
 * Queries the browser for the elements of a frame that listen for presses, and registers them with the document's
 * script, because scripts cannot list listeners. This also finds React's handlers: React adds an empty listener to
 * their elements. Waits at most `waitMs`. A later result counts for later snapshots. Returns whether elements were
 * registered.
 */
export async function findListeners(scene: ElementScene, frame: FrameSession, waitMs: number): Promise<boolean> {
  return within(updateListeners(scene, frame), waitMs, false);
}

/**
 * Whether the next query will probably find new elements: it is the document's first query, or the last query found
 * some.
 */
export function mayFindListeners(frame: FrameSession): boolean {
  const state = states.get(frame.cdp)?.get(frame.frameId);
  return state === undefined || state.world !== worldOf(frame) || state.isChanging;
}

async function updateListeners(scene: ElementScene, frame: FrameSession): Promise<boolean> {
  const { cdp, frameId } = frame;
  const documents = states.get(cdp) ?? new Map<string, State>();
  states.set(cdp, documents);
  const last = documents.get(frameId);
  // If the world differs, the frame's document was replaced after the last query.
  if (last && last.world === worldOf(frame)) {
    const result = await queryIfDue(scene, frame, last);
    if (result !== "left") return result === "registered";
  }
  const state = await createState(scene, frame);
  if (!state) return false;
  documents.set(frameId, state);
  const result = await queryIfDue(scene, frame, state);
  if (result === "too many") documents.set(frameId, { ...state, known: undefined });
  return result === "registered";
}

type QueryResult = "registered" | "none" | "left" | "too many";

/** Queries the listeners, unless a query runs, or a recent one was slow: a page must not slow down every snapshot. */
async function queryIfDue(scene: ElementScene, frame: FrameSession, state: State): Promise<QueryResult> {
  const beganAt = performance.now();
  if (!state.known || beganAt < state.nextAt) return "none";
  state.nextAt = Number.POSITIVE_INFINITY;
  try {
    const result = await query(scene, frame, state.world, state.known);
    state.isChanging = result === "registered";
    return result;
  } finally {
    const tookMs = performance.now() - beganAt;
    state.nextAt = tookMs > slowMs ? beganAt + 10 * tookMs : 0;
  }
}

async function query(
  scene: ElementScene,
  frame: FrameSession,
  world: number,
  known: KnownListeners,
): Promise<QueryResult> {
  try {
    const response = frame.cdp.send("DOMDebugger.getEventListeners", {
      objectId: known.root,
      depth: -1,
      pierce: false,
    });
    const { listeners } = await scene.progress.race(response);
    const nodes = listeners.flatMap(({ type, backendNodeId = 0 }) => (pressTypes.test(type) ? [backendNodeId] : []));
    const newNodes = [...new Set(nodes)].filter((node) => !known.nodes.has(node)).slice(0, maxNew);
    if (newNodes.length === 0) return "none";
    await register(scene, frame, world, known, newNodes);
    return "registered";
  } catch (thrown) {
    if (scene.progress.signal.aborted) throw thrown;
    return messageOf(thrown).includes(tooLong) ? "too many" : "left";
  }
}

/**
 * Prepares the queries of a document. The root is resolved in the page's own world, because the browser lists only the
 * listeners of the root's world. Child frames and shadow trees are not included. With `pierce`, Chromium 156 lists all
 * worlds, but makes the listed shadow roots unusable, and some renderers crash.
 */
async function createState(scene: ElementScene, frame: FrameSession): Promise<State | undefined> {
  const { cdp } = frame;
  const { objectId } = await callForObject(scene, frame, "listenersRoot");
  const world = worldOf(frame);
  if (objectId === undefined || world === undefined) return undefined;
  const { node } = await scene.progress.race(cdp.send("DOM.describeNode", { objectId }));
  cdp.send("Runtime.releaseObject", { objectId }).catch(() => undefined);
  const { backendNodeId } = node;
  const { object } = await scene.progress.race(cdp.send("DOM.resolveNode", { backendNodeId }));
  const { objectId: root } = object;
  return { world, known: root === undefined ? undefined : { root, nodes: new Set() }, nextAt: 0, isChanging: true };
}

async function register(
  scene: ElementScene,
  frame: FrameSession,
  world: number,
  known: KnownListeners,
  newNodes: readonly number[],
): Promise<void> {
  const { cdp } = frame;
  // Each document has its own group, so that releasing a group does not affect queries of other frames in the same
  // session.
  const objectGroup = `listeners-${world}`;
  const resolving = newNodes.map((backendNodeId) =>
    cdp.send("DOM.resolveNode", { backendNodeId, executionContextId: world, objectGroup }).then(
      ({ object: { objectId } }) => (objectId === undefined ? [] : [new HeldObject(objectId)]),
      () => [],
    ),
  );
  try {
    const held = await scene.progress.race(Promise.all(resolving));
    await callPage(scene, frame, "registerListening", ...held.flat());
    for (const node of newNodes) known.nodes.add(node);
  } finally {
    cdp.send("Runtime.releaseObjectGroup", { objectGroup }).catch(() => undefined);
  }
}
