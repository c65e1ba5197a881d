import { readFileSync } from "node:fs";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { type CDPSession, chromium, type Page } from "playwright";
import { bareFlags, browserPath } from "../../tools/bench/browsers.ts";
import { mainFrame, worldOf } from "../../workers/driver/elements/page-world.ts";
import { RefRegistry } from "../../workers/driver/elements/ref-registry.ts";
import { snapshotPage } from "../../workers/driver/observe/page-snapshot.ts";
import { CommandProgress } from "../../workers/pages/progress.ts";
import type { SessionPage } from "../../workers/pages/session-page.ts";

/** Pages in `pages/observed`. Each lists the elements that react to clicks as `window.acting`. */
export const observedPages = [
  "table",
  "mail",
  "shop",
  "form",
  "chat",
  "dashboard",
  "documentation",
  "map",
  "calendar",
  "feed",
] as const;

export type ObservedPage = (typeof observedPages)[number];

/** Bytes and milliseconds that no page of the comparison reaches. */
const bounds = { room: 4 * 2 ** 20, timeMs: 60_000 };

/** Roles of ARIA widgets. */
const widgets =
  /^(?:button|checkbox|combobox|gridcell|link|listbox|menuitem\w*|option|radio|scrollbar|searchbox|slider|spinbutton|switch|tab|textbox|treeitem)$/;

/** Our snapshot and Playwright's ARIA snapshot of the same document. */
export interface SnapshotComparison {
  readonly ours: string;
  readonly theirs: string;
  readonly tokens: { readonly ours: number; readonly theirs: number };
  /** Number of actionable elements, and descriptions of the elements without our reference. */
  readonly actionable: number;
  readonly lost: readonly string[];
  /** Milliseconds of our snapshot. */
  readonly ms: number;
}

function observedHtml(name: ObservedPage): string {
  return readFileSync(new URL(`pages/observed/${name}.html`, import.meta.url), "utf8");
}

/** Browser in which both snapshots are taken. */
export async function launchComparison() {
  const flags = bareFlags("headless-shell", undefined).filter((flag) => !/^(?:--remote-debugging|about:)/.test(flag));
  const browser = await chromium.launch({ executablePath: browserPath("headless-shell"), args: flags });
  const page = await browser.newPage({ viewport: { width: 1_280, height: 720 } });
  const cdp = await page.context().newCDPSession(page);
  const { frameTree } = await cdp.send("Page.getFrameTree");
  return {
    async compare(name: ObservedPage, isWhole: boolean): Promise<SnapshotComparison> {
      // A new document for each comparison.
      await page.goto("about:blank");
      await page.setContent(observedHtml(name));
      return compareSnapshots(page, cdp, frameTree.frame.id, isWhole);
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

async function compareSnapshots(page: Page, cdp: CDPSession, frameId: string, isWhole: boolean) {
  using progress = new CommandProgress(bounds.timeMs, []);
  // Only the members of a session page that the worker's code uses here.
  const sessionPage = {
    id: "page_1",
    cdp,
    targetId: frameId,
    cdpOf: () => cdp,
    tab: { frames: [] },
  } as unknown as SessionPage;
  const scene = { sessionPage, progress };
  const beganAt = performance.now();
  const { lines } = await snapshotPage(scene, mainFrame(scene), new RefRegistry(), {
    isWhole,
    find: "",
    mask: undefined,
    ...bounds,
  });
  const ms = performance.now() - beganAt;
  const ours = lines.join("\n");
  const boxed = (await page.ariaSnapshot({ mode: "ai", boxes: true })).split("\n");
  const theirs = isWhole ? boxed : withinView(boxed, new Set(await page.evaluate(boxesInView)));
  const actionable = await markActionable(page, theirs, isWhole);
  const reached = new Set(await reachedBy(cdp, worldOf(mainFrame(scene)), ours));
  const lost = [...actionable].flatMap(([mark, description]) => (reached.has(mark) ? [] : [description]));
  const aria = theirs.map((line) => line.replace(/ \[box=[^\]]*\]/, "")).join("\n");
  const tokens = { ours: countTokens(ours), theirs: countTokens(aria) };
  return { ours, theirs: aria, tokens, actionable: actionable.size, lost, ms };
}

/** Returns the boxes of the elements of which a part is in view. Runs in the page. */
function boxesInView(): string[] {
  const boxes = new Set<string>();
  for (const element of document.querySelectorAll("*")) {
    const { x, y, width, height } = element.getBoundingClientRect();
    let [left, top, right, bottom] = [Math.max(0, x), Math.max(0, y), x + width, y + height];
    [right, bottom] = [Math.min(right, innerWidth), Math.min(bottom, innerHeight)];
    for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
      if (getComputedStyle(at).overflowX === "visible") continue;
      const clip = at.getBoundingClientRect();
      [left, top] = [Math.max(left, clip.left), Math.max(top, clip.top)];
      [right, bottom] = [Math.min(right, clip.right), Math.min(bottom, clip.bottom)];
    }
    const isFlat = width * height === 0;
    // A hit test may miss an element that is barely in view.
    if (isFlat || (right > left + 2 && bottom > top + 2)) boxes.add([x, y, width, height].map(Math.round).join());
  }
  return [...boxes];
}

/** Returns the lines of the elements in view, with their properties and texts. */
function withinView(lines: readonly string[], inView: ReadonlySet<string>): string[] {
  let hiddenBelow = Number.POSITIVE_INFINITY;
  return lines.filter((line) => {
    const indent = line.search(/\S/);
    if (indent > hiddenBelow) return false;
    hiddenBelow = Number.POSITIVE_INFINITY;
    const box = /\[box=([^\]]*)\]/.exec(line)?.[1];
    if (box === undefined || inView.has(box.split(",").map(Number).map(Math.round).join())) return true;
    hiddenBelow = indent;
    return false;
  });
}

/** Numbers the actionable elements in an attribute. Returns their descriptions by number. */
async function markActionable(page: Page, theirs: readonly string[], isWhole: boolean): Promise<Map<string, string>> {
  const listed = theirs.flatMap((line) => {
    const [, role = "", rest = ""] = /^ *- (\w+)(.*)/.exec(line) ?? [];
    const ref = /\[ref=(\w+)\]/.exec(rest)?.[1];
    const isActionable = widgets.test(role) || rest.includes("[cursor=pointer]");
    return ref && isActionable && !rest.includes("[disabled]") ? [{ ref, line: line.trim() }] : [];
  });
  const marked = await Promise.all(
    listed.map(async ({ ref, line }) => {
      const mark = await page.locator(`aria-ref=${ref}`).evaluate(numberElement);
      return [mark, line] as const;
    }),
  );
  return new Map([...marked, ...(await page.evaluate(numberOthers, isWhole))]);
}

function numberElement(element: Element): string {
  const page = globalThis as unknown as { marked?: number };
  if (!element.hasAttribute("data-mark")) {
    page.marked = (page.marked ?? 0) + 1;
    element.setAttribute("data-mark", `p${page.marked}`);
  }
  return element.getAttribute("data-mark") ?? "";
}

/** Numbers the elements in `window.acting` and the focusable elements. Runs in the page. */
function numberOthers(isWhole: boolean): [string, string][] {
  const { acting } = globalThis as unknown as { acting: Element[] };
  const focusable = [
    ...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex], [contenteditable]"),
  ];
  const isReachable = (element: Element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    if (!element.checkVisibility({ visibilityProperty: true }) || width * height === 0) return false;
    if (element.matches(":disabled, [tabindex^='-']")) return false;
    if (isWhole) return true;
    const hit = document.elementFromPoint(x + width / 2, y + height / 2);
    return hit !== null && (element.contains(hit) || hit.contains(element));
  };
  return [...new Set([...acting, ...focusable])].filter(isReachable).map((element, index) => {
    const mark = element.getAttribute("data-mark") ?? `o${index}`;
    element.setAttribute("data-mark", mark);
    return [mark, element.outerHTML.slice(0, 90)];
  });
}

/** Returns the numbers of the elements that our references reach. */
async function reachedBy(cdp: CDPSession, contextId: number | undefined, ours: string): Promise<string[]> {
  const refs = [...ours.matchAll(/ ref=s(\d+)e(\d+)/g)].map(([, epoch, number]) => [Number(epoch), Number(number)]);
  const expression = `(() => {
    const name = Object.getOwnPropertyNames(globalThis).find((name) => /^[0-9A-F]{32}-/.test(name));
    const script = globalThis[name].page;
    return ${JSON.stringify(refs)}.flatMap(([epoch, number]) => {
      const element = script.elementOf({ epoch, number });
      const subjects = [element, element instanceof HTMLLabelElement ? element.control : null];
      return subjects.flatMap((each) => each?.getAttribute("data-mark") ?? []);
    });
  })()`;
  const { result } = await cdp.send("Runtime.evaluate", {
    expression,
    ...(contextId !== undefined && { contextId }),
    returnByValue: true,
  });
  return result.value;
}
