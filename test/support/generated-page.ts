/** Page of elements, some of which only look interactive, with a list of the interactive ones. */
export interface GeneratedPage {
  readonly html: string;
  /** Documents of the frames by path. */
  readonly frames: ReadonlyMap<string, string>;
  /** Numbers of the interactive elements. */
  readonly active: readonly number[];
}

/** Generates the element of a number: its markup, and whether it is interactive. */
type Maker = (number: number) => { readonly markup: string; readonly isActive: boolean };

/** Reports the number of each pressed element, or 0, to the top document, which lists the numbers in its title. */
const script = `
  const tell = (hit) => top.postMessage({ hit }, "*");
  const hear = (root) => root.addEventListener("pointerdown", (event) => {
    const path = event.composedPath();
    if (event.told || path[0].dataset?.closed) return;
    event.told = true;
    const things = path.filter((node) => node.dataset?.thing);
    tell(Number(things[0]?.dataset.thing ?? 0));
  }, true);
  hear(document);
  document.addEventListener("click", (event) => event.target.closest("a, button") && event.preventDefault());
  document.addEventListener("submit", (event) => event.preventDefault());
  if (top === window) {
    let count = 0;
    addEventListener("message", ({ data }) => (document.title = ++count + " " + data.hit));
  }`;

const style = `
  body { margin: 8px; font: 14px sans-serif } .row { height: 34px; overflow: visible; position: relative }
  .gone { display: none } .unseen { visibility: hidden } .flat { width: 0; height: 0; overflow: hidden; padding: 0; border: 0 }
  .cover { position: absolute; inset: 0; background: #eee; z-index: 2 } .far { position: absolute; left: -9999px }
  .pointer { cursor: pointer } .through { pointer-events: none } iframe { height: 60px; width: 400px; border: 1px solid }
  .hidden-box { position: absolute; opacity: 0; width: 1px; height: 1px } .clip { height: 30px; overflow: hidden }`;

const active = (markup: (thing: string, number: number) => string): Maker => {
  return (number) => ({ markup: markup(`data-thing="${number}"`, number), isActive: true });
};
const still = (markup: (thing: string, number: number) => string): Maker => {
  return (number) => ({ markup: markup(`data-thing="${number}"`, number), isActive: false });
};

const shadow = (mode: string, host: string, number: number) => `<${host}><template shadowrootmode="${mode}">
  <style>button { height: 28px }</style><button data-thing="${number}">thing-${number}</button></template></${host}>
  <script>{ const host = document.currentScript.previousElementSibling; if (host.shadowRoot) hear(host.shadowRoot); }</script>`;

/** A closed shadow root reveals the pressed element only to its own listeners. */
const closed = (host: string, number: number) => `<${host} data-closed=1></${host}><script>{
  const root = document.currentScript.previousElementSibling.attachShadow({ mode: "closed" });
  root.innerHTML = '<button data-thing="${number}">thing-${number}</button>';
  hear(root); }</script>`;

const makers: readonly Maker[] = [
  active((thing, number) => `<button ${thing}>thing-${number}</button>`),
  active(
    (thing, number) =>
      `<button ${thing} aria-label="thing-${number}"><svg width=20 height=20><circle r=9 /></svg></button>`,
  ),
  active((thing, number) => `<a href="#a${number}" ${thing}>thing-${number}</a>`),
  active((thing, number) => `<p>Some words, <a href="#b" ${thing}>thing-${number} over here</a>, and some more.</p>`),
  active((thing, number) => `<label>thing-${number} <input ${thing}></label>`),
  active((thing, number) => `<input ${thing} placeholder="thing-${number}">`),
  active(
    (thing, number) => `<input type=checkbox ${thing} id="c${number}"><label for="c${number}">thing-${number}</label>`,
  ),
  active((thing, number) => `<input type=radio name=r ${thing} aria-label="thing-${number}">`),
  active((thing, number) => `<input type=submit ${thing} value="thing-${number}">`),
  active((thing, number) => `<input type=range ${thing} title="thing-${number}">`),
  active((thing, number) => `<textarea rows=1 ${thing} placeholder="thing-${number}"></textarea>`),
  active((thing, number) => `<div contenteditable ${thing} aria-label="thing-${number}">some text</div>`),
  active((thing, number) => `<details><summary ${thing}>thing-${number}</summary></details>`),
  active((thing, number) => `<div role=button tabindex=0 ${thing}>thing-${number}</div>`),
  active((thing, number) => `<span role=link ${thing}>thing-${number}</span>`),
  active((thing, number) => `<div onclick="0" ${thing}>thing-${number}</div>`),
  active((thing, number) => `<div class=pointer ${thing}><span><b>thing-${number}</b></span></div>`),
  active((thing, number) => `<label ${thing}><input type=checkbox class=hidden-box><i>☐</i> thing-${number}</label>`),
  active((thing, number) => `<div style="opacity: .4"><button ${thing}>thing-${number}</button></div>`),
  active((thing, number) => `<div style="display: contents"><button ${thing}>thing-${number}</button></div>`),
  active(
    (thing, number) =>
      `<div style="width: 200px; transform: rotate(2deg)"><button ${thing}>thing-${number}</button></div>`,
  ),
  active((thing, number) => `<div style="zoom: 1.3"><button ${thing}>thing-${number}</button></div>`),
  active(
    (thing, number) =>
      `<form><input name=closest type=hidden><button ${thing} name=parentNode>thing-${number}</button></form>`,
  ),
  active((_thing, number) => shadow("open", "div", number)),
  active((_thing, number) => shadow("open", "x-open", number)),
  active((_thing, number) => closed("div", number)),
  active((_thing, number) => closed("x-closed", number)),
  still((thing, number) => `<button disabled ${thing}>thing-${number}</button>`),
  still(
    (thing, number) => `<fieldset disabled style="all: unset"><button ${thing}>thing-${number}</button></fieldset>`,
  ),
  still((thing, number) => `<button class=gone ${thing}>thing-${number}</button>`),
  still((thing, number) => `<div class=gone><a href="#c" ${thing}>thing-${number}</a></div>`),
  still((thing, number) => `<button class=unseen ${thing}>thing-${number}</button>`),
  still((thing, number) => `<button class=flat ${thing}>thing-${number}</button>`),
  still((thing, number) => `<button ${thing}>thing-${number}</button><div class=cover></div>`),
  still((thing, number) => `<button class=far ${thing}>thing-${number}</button>`),
  still((thing, number) => `<button class=through ${thing}>thing-${number}</button>`),
  still((thing, number) => `<div inert><button ${thing}>thing-${number}</button></div>`),
  still(
    (thing, number) =>
      `<div class=clip><div style="height: 40px"></div><a href="#d" ${thing}>thing-${number}</a></div>`,
  ),
  still((thing, number) => `<p ${thing}>thing-${number} is but a word: button "thing-${number}" ref=s1e${number}</p>`),
  still((thing, number) => `<input type=hidden value="thing-${number}" ${thing}>`),
  still((thing, number) => `<a ${thing}>thing-${number}</a>`),
  still((thing, number) => `<li ${thing}>thing-${number}</li>`),
];

/** Generates a page, the same for each seed. `otherOrigin` serves the frames of another site. */
export function generatePage(seed: number, otherOrigin: string): GeneratedPage {
  let state = (seed * 2_654_435_761) >>> 0;
  const random = (below: number) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) >>> 0;
    return state % below;
  };
  const frames = new Map<string, string>();
  const list: number[] = [];
  let number = 0;
  const make = (): string => {
    number += 1;
    const maker = makers[(random(makers.length) + number) % makers.length];
    const { markup = "", isActive = false } = maker?.(number) ?? {};
    if (isActive) list.push(number);
    return `<div class=row>${markup}</div>\n`;
  };
  const some = (count: number): string => Array.from({ length: count }, make).join("");
  const whole = (body: string) =>
    `<!DOCTYPE html><style>${style}</style><title>0</title><script>${script}</script>${body}`;
  const parts = [some(4 + random(6))];
  if (random(2) === 0) {
    const path = `/frame/${seed}`;
    frames.set(path, whole(some(1)));
    parts.push(`<iframe src="${random(2) === 0 ? otherOrigin : ""}${path}"></iframe>`);
  }
  if (random(3) === 0) parts.push(`<div style="height: ${300 + random(1_200)}px"></div>`);
  parts.push(some(3 + random(5)));
  return { html: whole(parts.join("")), frames, active: list };
}
