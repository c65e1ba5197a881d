import { markdownScript } from "../../../src/gen/injected/markdown-script.ts";
import { fail } from "../../../src/platform/errors.ts";
import { CommandProgress } from "../../pages/progress.ts";
import type { SessionPage } from "../../pages/session-page.ts";
import {
  callPage,
  DocumentReplaced,
  type ElementScene,
  evaluateInWorld,
  type FrameSession,
  mainFrame,
} from "../elements/page-world.ts";

interface Content {
  /** HTML from `serializeContent`: without scripts and forms. */
  readonly html: string;
  readonly url: string;
  /** Whether to convert all of the HTML. If false, the main content is extracted first. */
  readonly isPart: boolean;
}

/**
 * Shares of the remaining time: for the attempt in the converter page, for the attempt that extracts the main content,
 * and for the attempt that converts everything. The rest is left to report the timeout.
 */
const shares = { elsewhere: 0.25, extraction: 0.5, whole: 0.9 };

/** Name, as a JSON string, of the global that holds the converter in our isolated world. */
const converterName = JSON.stringify(crypto.randomUUID());

/** Converter pages that failed or did not respond in time. They are not used again. */
const failed = new WeakSet<SessionPage>();

export interface MarkdownScene extends ElementScene {
  /** Blank page in which conversion is tried first, so that not every page has to compile the converter. */
  readonly converter?: SessionPage | undefined;
}

/**
 * Converts HTML to Markdown in the converter page. Without a converter page, or if its conversion fails, converts in
 * `frame`. Throws `session-timeout` if the conversion in `frame` takes too long.
 */
export async function convertToMarkdown(scene: MarkdownScene, frame: FrameSession, content: Content): Promise<string> {
  const markdown = (await convertInConverter(scene, content)) ?? (await convertIn(scene, frame, content));
  if (markdown !== undefined) return markdown;
  const detail = "the page is too large to convert within the timeout: observe it, and read parts of it by ref";
  throw fail("session-timeout", {}, { detail });
}

/**
 * Converts in the converter page. Returns undefined if there is no usable converter page, or if the conversion fails or
 * takes too long.
 */
async function convertInConverter({ converter, progress: whole }: MarkdownScene, content: Content) {
  if (!converter || failed.has(converter)) return undefined;
  using progress = new CommandProgress(Math.ceil(shares.elsewhere * whole.remaining()), [whole.signal]);
  const scene = { sessionPage: converter, progress };
  const frame = mainFrame(scene);
  try {
    return await convertIn(scene, frame, content).catch(async (thrown) => {
      if (!(thrown instanceof DocumentReplaced)) throw thrown;
      // Any call creates the isolated world.
      await callPage(scene, frame, "title");
      return convertIn(scene, frame, content);
    });
  } catch (thrown) {
    if (whole.signal.aborted) throw thrown;
    failed.add(converter);
    return undefined;
  }
}

/** Converts in our isolated world of a frame. The world must already exist. Returns undefined after a timeout. */
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
      evaluate(
        `Object.hasOwn(globalThis, ${converterName}) ? globalThis[${converterName}].toMarkdown(...${args}) : null`,
        share,
      );
    let markdown = await convert();
    if (markdown === null) {
      await evaluate(`(globalThis[${converterName}] = ${markdownScript}, true)`, 1);
      markdown = await convert();
    }
    if (typeof markdown === "string") return markdown;
  }
  return undefined;
}
