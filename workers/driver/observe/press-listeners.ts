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

/** Listeners that make an element react to a person's click, tap or drag. */
const pressTypes =
  /^(?:click|dblclick|auxclick|contextmenu|mousedown|mouseup|pointerdown|pointerup|touchstart|touchend|dragstart)$/;

/** Maximum elements with listeners to resolve per snapshot, about 0.1 ms each. Later snapshots resolve the others. */
const maxNew = 600;

/** Milliseconds after which a query counts as slow. The next query then waits ten times as long as this one took. */
const slowMs = 100;

/** Known listeners of a document. */
interface KnownListeners {
  readonly root: string;
  /** Nodes registered with the document's script. */
  readonly nodes: Set<number>;
}

interface State {
  readonly world: number;
  /** Undefined for a document with too many listeners, which is not asked again. */
  readonly known: KnownListeners | undefined;
  /** Time of the next query. Infinite while a query runs. */
  nextAt: number;
  /** Whether the last query registered elements. */
  isChanging: boolean;
}

const states = new WeakMap<FrameSession["cdp"], Map<string, State>>();

/**
 * Queries the browser for the elements of a frame that listen for presses, and registers them with the document's
 * script. No script can see the listeners of a page. React marks the elements of its handlers by an empty listener, too.
 * Waits at most `waitMs`. A slower answer is registered for later snapshots. Returns whether elements were registered.
 */
export async function findListeners(scene: ElementScene, frame: FrameSession, waitMs: number): Promise<boolean> {
  return within(updateListeners(scene, frame), waitMs, false);
}

/** Whether the next query of a frame probably registers elements: it is the first, or the last one did. */
export function mayFindListeners(frame: FrameSession): boolean {
  const state = states.get(frame.cdp)?.get(frame.frameId);
  return state === undefined || state.world !== worldOf(frame) || state.isChanging;
}

async function updateListeners(scene: ElementScene, frame: FrameSession): Promise<boolean> {
  const { cdp, frameId } = frame;
  const documents = states.get(cdp) ?? new Map<string, State>();
  states.set(cdp, documents);
  const last = documents.get(frameId);
  // The frame may have left the document since.
  if (last && last.world === worldOf(frame)) {
    const result = await queryIfDue(scene, frame, last);
    if (result !== "left") return result === "registered";
  }
  const state = await enter(scene, frame);
  if (!state) return false;
  documents.set(frameId, state);
  const result = await queryIfDue(scene, frame, state);
  if (result === "too many") documents.set(frameId, { ...state, known: undefined });
  return result === "registered";
}

type QueryResult = "registered" | "none" | "left" | "too many";

/** Queries the listeners unless a query runs, or was slow a short time ago: a page must not slow each snapshot down. */
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
    const asked = frame.cdp.send("DOMDebugger.getEventListeners", { objectId: known.root, depth: -1, pierce: false });
    const { listeners } = await scene.progress.race(asked);
    const nodes = listeners.flatMap(({ type, backendNodeId = 0 }) => (pressTypes.test(type) ? [backendNodeId] : []));
    const news = [...new Set(nodes)].filter((node) => !known.nodes.has(node)).slice(0, maxNew);
    if (news.length === 0) return "none";
    await register(scene, frame, world, known, news);
    return "registered";
  } catch (thrown) {
    if (scene.progress.signal.aborted) throw thrown;
    return messageOf(thrown).includes(tooLong) ? "too many" : "left";
  }
}

/**
 * Prepares the queries of a document. The root is an object of the page's own world: the browser then lists the listeners
 * of that world, without inner frames and shadow trees. With `pierce`, Chromium 156 lists all worlds, but the shadow
 * roots that it lists are unusable afterwards, and some renderers crash.
 */
async function enter(scene: ElementScene, frame: FrameSession): Promise<State | undefined> {
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
  news: readonly number[],
): Promise<void> {
  const { cdp } = frame;
  // A group per document: its objects are released together while other frames of the session may be queried.
  const objectGroup = `listeners-${world}`;
  const resolving = news.map((backendNodeId) =>
    cdp.send("DOM.resolveNode", { backendNodeId, executionContextId: world, objectGroup }).then(
      ({ object: { objectId } }) => (objectId === undefined ? [] : [new HeldObject(objectId)]),
      () => [],
    ),
  );
  try {
    const held = await scene.progress.race(Promise.all(resolving));
    await callPage(scene, frame, "noteListening", ...held.flat());
    for (const node of news) known.nodes.add(node);
  } finally {
    cdp.send("Runtime.releaseObjectGroup", { objectGroup }).catch(() => undefined);
  }
}
