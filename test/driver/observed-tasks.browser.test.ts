import { afterAll, beforeAll, expect, test } from "vitest";
import { GeneratedSite } from "../support/generated-site.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

/* Small tasks, solved by a policy that sees the text of observe only. A solved page has the title "done". */

let site: GeneratedSite;
let worker: WorkerUnderTest;
let session: DrivenSession;

beforeAll(async () => {
  site = await new GeneratedSite().start();
  worker = await WorkerUnderTest.start(site.hosts);
  session = await worker.open();
});

afterAll(async () => {
  await session?.destroy();
  await worker?.stop();
  await site?.stop();
});

/** Taps the element of a matching line, types a text into it, or taps the middle of its box. */
type Step = RegExp | { readonly line: RegExp; readonly text: string } | { readonly box: RegExp };

type Task = readonly [name: string, html: string, ...steps: Step[]];

/** Solves the page when the text of the pressed element is `text`, by one listener of a parent. */
const delegated = (parent: string, text: string) =>
  `<script>document.querySelector("${parent}").addEventListener("click", (event) => {
    if (event.target.textContent.trim() === "${text}") done();
  })</script>`;

/** Solves the page when the element with the id `x` is pressed. */
const own = `<script>document.getElementById("x").addEventListener("click", () => done())</script>`;

const icon = (inner: string) => `<button>${inner}</button>`;
const square = "width: 24px; height: 24px; display: inline-block";
const others = icon('<i class="fa fa-pencil"></i>') + icon('<i class="fa fa-print"></i>');

const tasks: readonly Task[] = [
  ["an item of a list", `<ul><li>One<li>Two<li>Three</ul>${delegated("ul", "Two")}`, /"Two" ref/],
  ["an item of a menu", `<div class=m><div>Cut</div><div>Copy</div></div>${delegated(".m", "Copy")}`, /"Copy" ref/],
  [
    "a suggestion",
    `<div class=s style="cursor: pointer"><div>Berlin</div><div>Bern</div></div>${delegated(".s", "Bern")}`,
    /"Bern" ref/,
  ],
  [
    "a cell of a grid",
    `<div role=grid><div role=row><div role=gridcell>1</div><div role=gridcell>2</div></div></div>${delegated("[role=grid]", "2")}`,
    /"2" ref/,
  ],
  ["a span with a listener", `<p>Read <span id=x>the terms</span> first</p>${own}`, /"the terms" ref/],
  ["a row of a table", `<table id=t><tr><td>Ada<tr><td>Bob</table>${delegated("#t", "Bob")}`, /"Bob" ref/],
  [
    "a tab without a role",
    `<nav class=t><span>Home</span><span>News</span></nav>${delegated(".t", "News")}`,
    /"News" ref/,
  ],
  ["a star of five", `<div class=r><i>1</i><i>2</i><i>3</i></div>${delegated(".r", "3")}`, /"3" ref/],
  ["a date", `<div class=d><b>14</b><b>15</b><b>16</b></div>${delegated(".d", "15")}`, /"15" ref/],
  [
    "a link inside of a card",
    `<div style="cursor: pointer">Card <a id=x href="#a">More</a></div>${own}`,
    /link "More" ref/,
  ],
  [
    "a button inside of a row",
    `<div onclick="0">Mail <button id=x>Reply</button><button>Forward</button></div>${own}`,
    /"Reply" ref/,
  ],
  ["a button added later", `<div id=p></div><script>p.innerHTML = "<b id=x>Late</b>"</script>${own}`, /"Late" ref/],
  [
    "a mouse listener",
    `<div id=x>Press</div><script>x.addEventListener("mousedown", () => done())</script>`,
    /"Press" ref/,
  ],
  [
    "a pointer listener",
    `<div id=x>Point</div><script>x.addEventListener("pointerdown", () => done())</script>`,
    /"Point" ref/,
  ],
  ["an icon by class", `${others}<button id=x><i class="fa fa-trash"></i></button>${own}`, /\(icon: trash\) ref/],
  [
    "an icon by symbol",
    `${others}<button id=x><svg width=20 height=20><use href="#icon-save"/></svg></button>${own}`,
    /\(icon: .*save\) ref/,
  ],
  [
    "an icon by file",
    `${others}<button id=x><img width=20 height=20 src="/img/search.png"></button>${own}`,
    /\(icon: search\) ref/,
  ],
  ["an icon by data", `${others}<button id=x><i data-icon=phone></i></button>${own}`, /\(icon: phone\) ref/],
  [
    "an icon by test id",
    `${others}<button id=x data-testid=close-dialog></button>${own}`,
    /\(icon: close-dialog\) ref/,
  ],
  ["an icon by title", `${others}<button id=x title=Undo></button>${own}`, /"Undo" ref/],
  ["an icon by alt", `${others}<button id=x><img alt=Cart width=9 height=9></button>${own}`, /"Cart" ref/],
  [
    "an icon by the title of a graphic",
    `${others}<button id=x><svg width=20 height=20><title>Menu</title></svg></button>${own}`,
    /"Menu" ref/,
  ],
  ["an icon by label", `${others}<button id=x aria-label=Bold></button>${own}`, /"Bold" ref/],
  ["an icon by its own class", `${others}<button id=x class="btn btn-share"></button>${own}`, /\(icon: share\) ref/],
  [
    "a field by its name",
    `<input name=city><input name=email oninput="done()">`,
    { line: /\(field: email\) ref/, text: "a" },
  ],
  [
    "a field by its id",
    `<input id=first-name><input id=surname oninput="done()">`,
    { line: /\(field: surname\) ref/, text: "a" },
  ],
  [
    "a field by its label",
    `<label>Street<input></label><label>Town<input oninput="done()"></label>`,
    { line: /textbox "Town" ref/, text: "a" },
  ],
  [
    "a field by its placeholder",
    `<input placeholder=From><input placeholder=To oninput="done()">`,
    { line: /"To" ref/, text: "a" },
  ],
  [
    "a color",
    `<button style="${square}; background: #00f"></button><button id=x style="${square}; background: #f00"></button>${own}`,
    /\(color: #ff0000\) ref/,
  ],
  [
    "a color without a role",
    `<div class=c><div style="${square}; background: #0f0"></div><div id=x style="${square}; background: #ff0"></div></div>${own}`,
    /\(color: #ffff00\) ref/,
  ],
  ["a canvas", `<canvas id=x width=300 height=200></canvas>${own}`, { box: /canvas ref/ }],
  [
    "a named canvas",
    `<canvas width=99 height=99></canvas><canvas id=x aria-label=Board width=200 height=200></canvas>${own}`,
    { box: /canvas "Board"/ },
  ],
  ["a chart", `<svg id=x width=300 height=100>${"<rect width=9 height=99 />".repeat(8)}</svg>${own}`, { box: /chart/ }],
  [
    "a slider",
    `<input type=range aria-label=Speed min=10 max=20 value=12 oninput="done()">`,
    /slider "Speed" ref=\w+ value="12" min=10 max=20/,
  ],
  [
    "a draggable card",
    `<div draggable=true>Low</div><div id=x draggable=true>High</div>${own}`,
    /"High" ref=\w+ draggable/,
  ],
  [
    "a handle",
    `<div style="cursor: grab">One</div><div id=x style="cursor: grab">Two</div>${own}`,
    /"Two" ref=\w+ draggable/,
  ],
  [
    "a disclosure",
    `<details><summary>More</summary><button id=x>Inner</button></details>${own}`,
    /"More" ref=\w+ collapsed/,
    /"Inner" ref/,
  ],
  [
    "a value of a table",
    `<table><tr><td>Ada<td>17<tr><td>Bob<td>42</table><input aria-label=Sum oninput="if (value === '42') done()">`,
    { line: /"Sum" ref/, text: "42" },
  ],
  [
    "an unchecked box",
    `<label><input type=checkbox checked>A</label><label><input id=x type=checkbox>B</label>${own}`,
    /checkbox "B" ref=\w+$/m,
  ],
  ["a button in a frame", `<iframe srcdoc="<button onclick='parent.done()'>Deep</button>"></iframe>`, /"Deep" ref/],
  [
    "a button in a shadow root",
    `<div id=h></div><script>h.attachShadow({ mode: "open" }).innerHTML = "<button onclick='done()'>In</button>"</script>`,
    /"In" ref/,
  ],
];

/** Performs a step on the first line that matches. */
function act(snapshot: string, step: Step) {
  const pattern = step instanceof RegExp ? step : "box" in step ? step.box : step.line;
  const line = snapshot.split("\n").find((each) => pattern.test(each));
  if (line === undefined) throw new Error(`no line matches ${pattern}:\n${snapshot}`);
  if (!(step instanceof RegExp) && "box" in step) {
    const [, x, y, width, height] = (/ box=(-?\d+),(-?\d+),(\d+),(\d+)/.exec(line) ?? []).map(Number);
    return { case: "tap", value: { x: Number(x) + Number(width) / 2, y: Number(y) + Number(height) / 2 } } as const;
  }
  const ref = / ref=(s\d+e\d+)/.exec(line)?.[1] ?? "";
  if (step instanceof RegExp) return { case: "tap", value: { ref } } as const;
  return { case: "type", value: { ref, text: step.text } } as const;
}

async function solve([, html, ...steps]: Task): Promise<string> {
  await session.navigate({
    url: site.written(`<script>function done() { document.title = "done"; }</script>${html}`),
  });
  for (const step of steps) {
    const { snapshot } = await session.observe();
    await session.interact({ action: act(snapshot, step) });
  }
  return (await session.observe()).title;
}

test("solves small tasks by the text of observe alone", { timeout: 300_000 }, async () => {
  const unsolved: string[] = [];
  for (const task of tasks) {
    const title = await solve(task).catch((thrown: Error) => thrown.message);
    if (title !== "done") unsolved.push(`${task[0]}: ${title}`);
  }
  expect(tasks.length).toBeGreaterThanOrEqual(40);
  expect(unsolved).toEqual([]);
});
