import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  type Observation,
  ObservationSchema,
  type ObserveOptions,
  type ObserveRequest,
  ObserveScope,
} from "../../../src/gen/pilothouse/v1/session_pb.ts";
import type { Ref } from "../../injected/page-refs.ts";
import { withoutLookahead } from "../../injected/plain-text.ts";
import { shownText } from "../../pages/shown-text.ts";
import { crashedFailure } from "../../pages/tab.ts";
import type { TextMask } from "../../variables/text-mask.ts";
import { browserFailure } from "../actions/browser-failure.ts";
import type { Scene } from "../actions/scene.ts";
import { callPage, DocumentReplaced, mainFrame } from "../elements/page-world.ts";
import { retryUntilTimeout } from "../elements/reach.ts";
import type { RefRegistry } from "../elements/ref-registry.ts";
import { takeModelPicture } from "./model-picture.ts";
import { type PageSnapshot, snapshotPage } from "./page-snapshot.ts";
import { readElement } from "./read-element.ts";

/** Maximum size of a snapshot in bytes, and the default of `max_bytes`. */
const maxBytes = 24_576;

/**
 * Output limit in bytes, before masking, of a search in a session with secrets. The limit is fixed, so that the output
 * size reveals nothing about masked matches.
 */
const maxFound = 8 * maxBytes;

/**
 * Bytes read beyond the output limit, to find secrets that the limit cuts, also if a page splits a secret over lines.
 */
const extraBytes = 1_024;

/** Time budget in milliseconds per document for a snapshot. */
const snapshotMs = 120;
/** Time budget in milliseconds per document for a search. A search that stops early may miss matches. */
const searchMs = 500;

/** Milliseconds without changes after which a page counts as settled. */
const quietMs = 100;
/** Longest wait in milliseconds for a page to settle. */
const settleMs = 3_000;

export interface ObserveScene extends Scene {
  readonly refs: RefRegistry;
}

type ObservationRequest = Pick<ObserveOptions, "scope" | "maxBytes" | "find" | "screenshot" | "marks"> &
  Pick<Partial<ObserveRequest>, "ref" | "offset">;

/**
 * Returns the text snapshot of a page with references, and optionally a screenshot. With `ref`, returns only the text
 * of the referenced element.
 */
export async function observe(scene: ObserveScene, request: ObservationRequest): Promise<Observation> {
  const { sessionPage, viewport } = scene;
  if (sessionPage.isCrashed) throw crashedFailure();
  const { scope, find = "", maxBytes: room = maxBytes, screenshot, marks, ref, offset = 0 } = request;
  const mask = scene.secrets.textMask();
  const isSearch = find !== "";
  const pageOptions = {
    isWhole: scope === ObserveScope.PAGE,
    find,
    room: mask ? (isSearch ? maxFound : room + extraBytes) : room,
    timeMs: isSearch ? searchMs : snapshotMs,
    mask: isSearch ? mask : undefined,
  };
  try {
    if (ref !== undefined) return await readElement(scene, ref, offset, room);
    const snapshotting = retryUntilTimeout(scene, async () => ({
      value: await snapshotPage(scene, mainFrame(scene), scene.refs, pageOptions),
    }));
    // Marks need the references of the snapshot, so only a picture without marks is taken at the same time.
    const plainPicture = screenshot && !marks ? takeModelPicture(scene) : undefined;
    const [pageSnapshot, unmarked] = await Promise.all([snapshotting, plainPicture]);
    // Masked before the cut, because part of a secret would not be recognized.
    const { lines, isCut } = cut({ ...pageSnapshot, lines: maskLines(pageSnapshot.lines, mask) }, room);
    const picture = marks
      ? await takeModelPicture(scene, { refs: refsIn(lines), positions: pageSnapshot.positions })
      : unmarked;
    const { scroll, height } = pageSnapshot;
    const snapshot = lines.join("\n");
    const seen = { pageId: sessionPage.id, url: sessionPage.address, title: shownText(pageSnapshot.title) };
    return create(ObservationSchema, {
      ...seen,
      snapshot,
      truncated: isCut,
      viewport,
      scroll,
      height,
      ...(picture && { picture }),
    });
  } catch (thrown) {
    throw browserFailure(thrown);
  }
}

const maskLines = (lines: readonly string[], mask: TextMask | undefined): readonly string[] =>
  mask ? mask.apply(lines.join("\n"), true).split("\n") : lines.map(withoutLookahead);

/** Returns the references of the elements in a snapshot's lines. */
function refsIn(lines: readonly string[]): Ref[] {
  return lines.flatMap((line) => {
    // Quoted strings are texts of the page, which may contain fake references.
    const [, epoch, number] = / ref=s(\d+)e(\d+)/.exec(line.replace(/"(?:[^"\\]|\\.)*"/g, "")) ?? [];
    return number === undefined ? [] : [{ epoch: Number(epoch), number: Number(number) }];
  });
}

/** Resolves when the page has settled after an action, has closed or crashed, or after `settleMs`. */
export async function waitUntilSettled(scene: ObserveScene): Promise<void> {
  const { sessionPage, progress } = scene;
  const { tab } = sessionPage;
  const endsAt = performance.now() + Math.min(settleMs, progress.remaining());
  for (let left = endsAt - performance.now(); left > 0; left = endsAt - performance.now()) {
    await tab.changes.until(() => !tab.isLeaving || tab.isClosed || undefined, progress, left);
    if (tab.isClosed || tab.isCrashed || tab.isLeaving) return;
    const { started } = tab;
    try {
      const timeoutMs = Math.max(1, endsAt - performance.now());
      const quiet = callPage(scene, mainFrame(scene), "quiet", { quietMs, timeoutMs });
      const isObsolete = () => tab.started > started || tab.isClosed || tab.isCrashed;
      await tab.changes.before(quiet, isObsolete, progress, timeoutMs);
    } catch (thrown) {
      if (!(thrown instanceof DocumentReplaced)) throw browserFailure(thrown);
      await progress.race(delay(20));
      continue;
    }
    if (tab.started === started && !tab.isLeaving) return;
  }
}

/** Returns the first lines, as many as fit into `room` bytes. */
function cut({ lines, isCut }: PageSnapshot, room: number): Pick<PageSnapshot, "lines" | "isCut"> {
  let left = room + 1;
  const count = lines.findIndex((line) => {
    left -= Buffer.byteLength(line) + 1;
    return left < 0;
  });
  return count < 0 ? { lines, isCut } : { lines: lines.slice(0, count), isCut: true };
}
