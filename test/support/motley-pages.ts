/* Random pages of elements that are hard to click, and commands for them. The same seed generates the same page. */

/** Command on an element. */
export interface MotleyCommand {
  readonly widget: string;
  readonly kind: "tap" | "hover" | "select" | "scroll" | "wait";
  readonly selector: string;
  readonly frame?: readonly string[];
  readonly values?: readonly string[];
  /** Whether the command cannot succeed, so that it gets a short timeout. */
  readonly isDoomed?: boolean;
}

interface Widget {
  readonly name: string;
  readonly html: string;
  readonly commands: readonly Omit<MotleyCommand, "widget">[];
}

type Random = () => number;

/** Creates a pseudorandom generator of numbers from 0 to 1. */
function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const tap = (selector: string, more: Partial<MotleyCommand> = {}) => ({ kind: "tap", selector, ...more }) as const;
const wait = (selector: string) => ({ kind: "wait", selector }) as const;
const doomed = { isDoomed: true };

/** Each widget is a function of the prefix of its element ids. */
const makers: Readonly<Record<string, (id: string, otherSite: string) => Omit<Widget, "name">>> = {
  plain: (id) => ({ html: `<button id="${id}">plain</button>`, commands: [tap(`#${id}`), wait(`#${id}`)] }),
  entering: (id) => ({
    html: `<button id="${id}" style="animation: enter 600ms">enters</button>`,
    commands: [tap(`#${id}`)],
  }),
  restless: (id) => ({
    html: `<button id="${id}" style="animation: enter 400ms infinite linear, shrink 610ms infinite linear">restless</button>`,
    commands: [tap(`#${id}`, doomed)],
  }),
  sliding: (id) => ({
    html: `<button id="${id}" style="position: relative">slides</button><script>slide("${id}", 800)</script>`,
    commands: [tap(`#${id}`)],
  }),
  late: (id) => ({
    html: `<div id="${id}-place"></div><script>later(400, () => { get("${id}-place").innerHTML = '<button id="${id}">late</button>'; })</script>`,
    commands: [tap(`#${id}`), wait(`#${id}`)],
  }),
  covered: (id) => ({
    html: `<div class="stage"><button id="${id}">covered</button><div class="cover"></div></div>`,
    commands: [tap(`#${id}`, doomed), { kind: "hover", selector: `#${id}`, ...doomed }, wait(`#${id}`)],
  }),
  uncovered: (id) => ({
    html: `<div class="stage"><button id="${id}">uncovered</button><div class="cover" id="${id}-cover"></div></div><script>later(600, () => get("${id}-cover").remove())</script>`,
    commands: [tap(`#${id}`)],
  }),
  disabled: (id) => ({
    html: `<button id="${id}" disabled>disabled</button><span role="button" aria-disabled="true" id="${id}-aria">no</span>`,
    commands: [tap(`#${id}`, doomed), tap(`#${id}-aria`, doomed)],
  }),
  hidden: (id) => ({
    html: `<button id="${id}" hidden>hidden</button><button id="${id}-unseen" style="visibility: hidden">unseen</button>`,
    commands: [tap(`#${id}`, doomed), tap(`#${id}-unseen`, doomed), tap(`#${id}-absent`, doomed)],
  }),
  twins: (id) => ({
    html: `<button class="${id}" hidden>first</button><button class="${id}" id="${id}-second">second</button>`,
    commands: [tap(`.${id}`), wait(`.${id}`)],
  }),
  shadow: (id) => ({
    html: `<section id="${id}"></section><script>shadow("${id}")</script>`,
    commands: [tap(`#${id}-outer`), tap(`#${id} #${id}-inner`)],
  }),
  framed: (id) => ({
    html: `<iframe id="${id}" src="/frame?id=${id}"></iframe>`,
    commands: [tap(`#${id}-inside`, { frame: [`#${id}`] }), tap(`#${id}-below`, { frame: [`#${id}`] })],
  }),
  elsewhere: (id, otherSite) => ({
    html: `<iframe id="${id}" src="${otherSite}/frame?id=${id}"></iframe>`,
    commands: [tap(`#${id}-inside`, { frame: [`#${id}`] }), tap(`#${id}-below`, { frame: [`#${id}`] })],
  }),
  virtual: (id) => ({
    html: `<div id="${id}" class="box"></div><script>virtual("${id}")</script>`,
    commands: [
      tap(`#${id}-2`),
      tap(`#${id}-9`),
      { kind: "scroll", selector: `#${id}` },
      { kind: "scroll", selector: `#${id}` },
    ],
  }),
  boxed: (id) => ({
    html: `<div class="box"><div class="box" style="margin: 400px 0"><div style="height: 500px"></div><button id="${id}">boxed</button></div></div>`,
    commands: [tap(`#${id}`)],
  }),
  chosen: (id) => ({
    html: `<select id="${id}"><option value="a">Ant</option><option value="b">Bee</option></select><select id="${id}-many" multiple><option>Cat</option><option>Dog</option></select>`,
    commands: [
      { kind: "select", selector: `#${id}`, values: ["b"] },
      { kind: "select", selector: `#${id}`, values: ["Ant"] },
      { kind: "select", selector: `#${id}-many`, values: ["Cat", "Dog"] },
      { kind: "select", selector: `#${id}`, values: ["wasp"], isDoomed: true },
    ],
  }),
  labelled: (id) => ({
    html: `<label id="${id}"><input type="checkbox" id="${id}-box"> a label</label>`,
    commands: [tap(`#${id}`), tap(`#${id}-box`)],
  }),
  menu: (id) => ({
    html: `<div id="${id}" class="menu">menu<button id="${id}-item">item</button></div>`,
    commands: [{ kind: "hover", selector: `#${id}` }, wait(`#${id}`)],
  }),
  shifting: (id) => ({
    html: `<div id="${id}-banner"></div><button id="${id}">shifted</button><script>later(300, () => { get("${id}-banner").style.height = "90px"; })</script>`,
    commands: [tap(`#${id}`)],
  }),
  dodging: (id) => ({
    html: `<div class="stage"><button id="${id}">dodges</button></div><script>dodge("${id}")</script>`,
    commands: [tap(`#${id}`)],
  }),
  link: (id) => ({
    html: `<p style="width: 90px"><a id="${id}" href="#${id}">a link of several lines, all of which are one</a></p>`,
    commands: [tap(`#${id}`)],
  }),
  far: (id) => ({
    html: `<div style="height: 900px"></div><button id="${id}">far</button>`,
    commands: [tap(`#${id}`), wait(`#${id}`)],
  }),
};

/** Script functions of a page, whose title counts the events and shows the last one. */
const prelude = `<style>
  body { margin: 0; padding-bottom: 300px; font: 16px sans-serif; }
  header { position: sticky; top: 0; height: 40px; background: #eee; z-index: 9; }
  .stage { position: relative; height: 80px; } .stage > * { position: absolute; left: 0; top: 0; }
  .cover { width: 300px; height: 70px; background: #ddd; }
  .box { width: 220px; height: 120px; overflow: auto; }
  .menu { width: 100px; height: 60px; background: #cde; } .menu button { display: none; } .menu:hover button { display: block; }
  iframe { display: block; width: 300px; height: 160px; border: 3px solid; padding: 5px; }
  /* The period differs from its companion's, so that frames far apart on a busy machine show different states. */
  @keyframes shrink { to { scale: 0.5; } }
  @keyframes enter { from { transform: translateX(0); } to { transform: translateX(200px); } }
</style>
<script>
  let events = 0;
  const note = (what) => { events += 1; document.title = events + " " + what; };
  const get = (id) => document.getElementById(id);
  const later = (ms, act) => setTimeout(act, ms);
  for (const type of ["click", "change"]) {
    document.addEventListener(type, (event) => {
      const target = event.composedPath().find(({ id }) => id);
      if (target) note(type + " " + target.id + (type === "change" ? " " + [...(target.selectedOptions ?? [])].map(({ label }) => label) : ""));
    }, true);
  }
  addEventListener("message", ({ data }) => note(data));
  const slide = (id, ms) => {
    const beganAt = performance.now();
    const step = () => {
      const share = Math.min(1, (performance.now() - beganAt) / ms);
      get(id).style.left = share * 300 + "px";
      if (share < 1) requestAnimationFrame(step);
    };
    step();
  };
  const shadow = (id) => {
    const outer = get(id).attachShadow({ mode: "open" });
    outer.innerHTML = '<button id="' + id + '-outer">outer</button><div></div>';
    outer.querySelector("div").attachShadow({ mode: "open" }).innerHTML = '<button id="' + id + '-inner">inner</button>';
  };
  const virtual = (id) => {
    const box = get(id);
    const rows = document.createElement("div");
    rows.style.cssText = "position: relative; height: 6000px";
    const draw = () => {
      const first = Math.max(0, Math.floor(box.scrollTop / 30) - 6);
      rows.innerHTML = Array.from({ length: 16 }, (_, at) => first + at).map((row) =>
        '<button style="position: absolute; height: 26px; top: ' + row * 30 + 'px" id="' + id + "-" + row + '">' + row + "</button>").join("");
    };
    box.append(rows);
    box.addEventListener("scroll", draw);
    draw();
  };
  const dodge = (id) => get(id).addEventListener("mousemove", () => { get(id).style.left = "200px"; }, { once: true });
</script>
<header>header</header>`;

/** Returns the document of a frame. */
export function frameHtml(id: string): string {
  const button = (name: string) =>
    `<button onclick="top.postMessage('framed ${id}-${name}', '*')" id="${id}-${name}">${name}</button>`;
  return `<!DOCTYPE html><body style="margin: 0">${button("inside")}<div style="height: 400px"></div>${button("below")}`;
}

/** Generates a page of all widgets in random order, and a number of commands for it. */
export function motleyPage(seed: number, commands: number, otherSite: string) {
  const random = seeded(seed);
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)];
  const order = Object.entries(makers)
    .map((entry) => ({ entry, rank: random() }))
    .toSorted((one, other) => one.rank - other.rank);
  const widgets = order.map(({ entry: [name, make] }, at) => ({ name, ...make(`w${at}`, otherSite) }));
  const html = `<!DOCTYPE html><title>0</title>${prelude}${widgets.map((widget) => widget.html).join("\n")}`;
  const list = Array.from({ length: commands }, (): MotleyCommand => {
    const widget = pick(widgets);
    const command = widget && pick(widget.commands);
    if (!command) throw new Error("every widget has commands");
    return { widget: widget.name, ...command };
  });
  return { html, commands: list };
}
