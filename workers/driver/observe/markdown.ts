import { markdownScript } from "../../../src/gen/injected/markdown-script.ts";
import { fail } from "../../../src/platform/errors.ts";
import { CommandProgress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import {
  callPage,
  DocumentLeft,
  type ElementScene,
  evaluateInWorld,
  type FrameSession,
  mainFrame,
} from "../elements/page-world.ts";

interface Content {
  /** HTML without scripts, forms and names. */
  readonly html: string;
  readonly url: string;
  /** Whether all of it is wanted, without a search for the main content. */
  readonly isPart: boolean;
}

/**
 * Shares of the remaining time: for another page that converts, for the attempt that extracts the main content, and for
 * the attempt that converts all. The rest is left for the report that the time did not suffice.
 */
const shares = { elsewhere: 0.25, extraction: 0.5, whole: 0.9 };

/** Name of the converter in a document's world, which pages cannot read. */
const home = JSON.stringify(crypto.randomUUID());

/** Pages that failed to convert for others. */
const failed = new WeakSet<SessionPage>();

export interface MarkdownScene extends ElementScene {
  /** Blank page that converts first, so that not every page has to compile the converter. */
  readonly converter?: SessionPage | undefined;
}

/** Converts HTML to Markdown in the world of a frame's script, which loads the converter first. */
export async function convertToMarkdown(scene: MarkdownScene, frame: FrameSession, content: Content): Promise<string> {
  const markdown = (await convertElsewhere(scene, content)) ?? (await convertIn(scene, frame, content));
  if (markdown !== undefined) return markdown;
  const detail = "the page is too large to be converted within the timeout: observe it, and read parts by ref";
  throw fail("session-timeout", {}, { detail });
}

/** Converts in the converter's page. Returns undefined if there is none, if it fails or if it takes too long. */
async function convertElsewhere({ converter, progress: whole }: MarkdownScene, content: Content) {
  if (!converter || failed.has(converter)) return undefined;
  using progress = new CommandProgress(Math.ceil(shares.elsewhere * whole.remaining()), [whole.signal]);
  const scene = { sessionPage: converter, progress };
  const frame = mainFrame(scene);
  try {
    return await convertIn(scene, frame, content).catch(async (thrown) => {
      if (!(thrown instanceof DocumentLeft)) throw thrown;
      // Loads the script.
      await callPage(scene, frame, "title");
      return convertIn(scene, frame, content);
    });
  } catch (thrown) {
    if (whole.signal.aborted) throw thrown;
    failed.add(converter);
    return undefined;
  }
}

/** Converts in a frame. Returns undefined if the time does not suffice. */
async function convertIn(
  scene: ElementScene,
  frame: FrameSession,
  { html, url, isPart }: Content,
): Promise<string | undefined> {
  const { progress } = scene;
  const evaluate = (expression: string, share: number) =>
    evaluateInWorld(scene, frame, expression, Math.max(1, share * progress.remaining()));
  for (const share of isPart ? [shares.whole] : [shares.extraction, shares.whole]) {
    const args = JSON.stringify([html, url, share === shares.whole]);
    const convert = () =>
      evaluate(`Object.hasOwn(globalThis, ${home}) ? globalThis[${home}].toMarkdown(...${args}) : null`, share);
    let markdown = await convert();
    if (markdown === null) {
      await evaluate(`(globalThis[${home}] = ${markdownScript}, true)`, 1);
      markdown = await convert();
    }
    if (typeof markdown === "string") return markdown;
  }
  return undefined;
}
