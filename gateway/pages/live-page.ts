import { readFileSync } from "node:fs";
import type { FastifyInstance } from "fastify";
import { html } from "../../src/platform/html.ts";
import { pageHeadersFor } from "./content-policy.ts";
import { revalidated } from "./pages.ts";
import { page } from "./shell.ts";
import { style } from "./style.ts";

/** Script of the page, built from `gateway/web`. */
const script = readBuilt("live.js");

function readBuilt(name: string): string {
  return readFileSync(new URL(`../../src/gen/web/${name}`, import.meta.url), "utf8");
}

/** Style of the page. The picture fills the space between the toolbars. Messages overlay its lower edge. */
const ownStyle = `
html, body { height: 100%; }
body { display: flex; flex-direction: column; height: 100dvh; }
.bar, .tools { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem .9rem; padding: .5rem .9rem;
  background: var(--shade); border-bottom: 1px solid var(--line); font-size: 14px; }
.bar p, .tools form { margin: 0; }
.bar h1 { flex: 1 1 8rem; min-width: 0; margin: 0; font-size: 15px; line-height: 1.4; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; }
#viewers { color: var(--soft); max-width: 100%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
#status { display: flex; align-items: center; gap: .45rem; font-weight: 600; }
#status::before { content: ""; width: .6rem; height: .6rem; border-radius: 50%; background: var(--soft); }
[data-is=live] #status::before { background: var(--get); }
[data-is=paused] #status::before { background: var(--patch); }
[data-is=over] #status::before { background: var(--delete); }
button, #address, #question :is(#question-text, select) { min-height: 2.1rem; padding: .2rem .7rem; font: inherit; color: var(--ink); background: var(--paper);
  border: 1px solid var(--line); border-radius: 7px; }
button { cursor: pointer; }
button:hover:enabled { background: var(--code); }
button:disabled { color: var(--soft); cursor: default; }
#control-button { font-weight: 600; color: var(--on-button); background: var(--button); border-color: var(--button); }
#control-button:hover { filter: brightness(1.08); }
[data-is-controlled=true] #control-button { color: var(--ink); background: var(--paper); border-color: var(--ink); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.tabs { display: flex; gap: .3rem; flex: 1 1 100%; min-width: 0; }
#tabs { display: flex; gap: .3rem; margin: 0; padding: 0; list-style: none; min-width: 0; overflow-x: auto; scrollbar-width: thin; }
#tabs li { display: flex; flex: 0 1 15rem; min-width: 7rem; }
#tabs button { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
#tabs button:first-child { flex: 1; border-radius: 7px 0 0 7px; text-align: left; }
#tabs button:has(+ :disabled) { border-radius: 7px; }
#tabs button:last-child { flex: none; border-left: none; border-radius: 0 7px 7px 0; padding: .2rem .55rem; }
#tabs [aria-pressed=true] { font-weight: 600; background: var(--code); color: var(--ink); }
#tabs :focus-visible { outline-offset: -2px; }
#go { display: flex; flex: 1 1 14rem; gap: .4rem; min-width: 0; }
#address { flex: 1; min-width: 0; text-overflow: ellipsis; }
#address:read-only { color: var(--soft); background: none; }
.group { display: flex; gap: .4rem; }
#speed { position: relative; margin: 0; color: var(--soft); }
#latency { position: absolute; z-index: 1; inset: calc(100% + .6rem) 0 auto auto; padding: .3rem .7rem; white-space: nowrap; background: var(--paper);
  border: 1px solid var(--line); border-radius: 7px; }
#messages { position: absolute; inset: auto 0 0; max-height: 100%; overflow: auto; pointer-events: none; }
#messages > * { background: var(--shade); border-top: 1px solid var(--line); pointer-events: auto; }
#messages > #notice { margin: 0; padding: .6rem .9rem; border-left: 4px solid var(--patch); pointer-events: none; }
#question { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem .6rem; padding: .6rem .9rem;
  border-left: 4px solid var(--link); }
#question p { margin: 0; flex: 1 1 100%; max-height: 5rem; overflow: auto; overflow-wrap: anywhere; white-space: pre-wrap; }
#question-heading { font-weight: 600; }
#question :is(#question-text, select) { flex: 1 1 14rem; min-width: 0; }
#question select { max-width: 30rem; padding: .2rem; }
#question button { min-width: 5rem; }
#question-yes { font-weight: 600; }
body:not([data-is-controlled=true]) #question :is(input, select, button) { display: none; }
#question[data-at-field] { position: fixed; z-index: 1; width: min(20rem, calc(100vw - 24px)); max-height: calc(100vh - 24px);
  overflow: auto; border: 1px solid var(--line); border-radius: 7px; }
#question[hidden], #question [hidden], #question p:empty { display: none; }
#downloads { margin: 0; padding: 0; list-style: none; max-height: 8rem; overflow: auto; }
#downloads[hidden] { display: none; }
#downloads li { display: flex; align-items: center; gap: .4rem; padding: .4rem .9rem;
  border-left: 4px solid var(--get); }
#downloads span { flex: 1; min-width: 0; overflow-wrap: anywhere; }
#notice:empty, #control-status:empty, #viewers:empty { display: none; }
[data-is=over] #messages > #notice { border-left-color: var(--delete); }
[data-is=over] :is(.tools, #share) { display: none; }
#keys { position: fixed; inset: auto auto 0 0; width: 1px; height: 1px; padding: 0; border: 0; opacity: 0; font-size: 16px; }
#hint { color: var(--soft); display: none; }
main.stage { position: relative; flex: 1; min-height: 0; max-width: none; padding: 3px; display: grid; place-items: center;
  background: color-mix(in srgb, var(--code) 85%, var(--ink)); }
canvas { width: 100%; height: 100%; min-height: 0; object-fit: contain; }
[data-is-controlled=true] canvas { touch-action: none; }
[data-is-controlled=true] .stage { outline: 1px solid var(--get); outline-offset: -1px; }
.stage:has(#keys:focus) { outline-width: 3px; outline-offset: -3px; }
body:not([data-is-controlled=true]) :is(.group, [data-drives]), #tabs button:last-child:disabled { display: none; }
canvas:not([data-sequence]) { visibility: hidden; }
[data-is=over] canvas, [data-is=waiting] canvas { opacity: .45; }
@media (hover: hover) and (min-width: 1101px) { body:has(#keys:focus) #hint { display: block; } }
@media (max-width: 760px) {
  .bar, .tools { padding: .25rem .6rem; gap: .2rem .5rem; }
  .bar h1 { flex: 1 1 0; }
  .bar::after { content: ""; order: 1; flex-basis: 100%; }
  #control-status, #viewers { order: 2; font-size: 12px; line-height: 1.3; }
  #viewers { order: 3; flex: 1 1 3rem; text-align: right; }
  .tools { order: 1; flex-wrap: nowrap; overflow-x: auto; border-width: 1px 0 0; }
  .tools > *, .group > * { flex: none; }
  .group { display: contents; }
  #go { flex: 1 0 7rem; }
  #go button { display: none; }
  .tabs { order: 1; }
  #copy, #paste { order: 2; }
  #tabs:has(> :only-child), #speed { display: none; }
  button, #address, #question :is(#question-text, select) { min-height: 2.5rem; }
  #address, #question :is(#question-text, select) { font-size: 16px; }
  #question select { flex-basis: 100%; max-width: none; max-height: 13rem; }
  #question option { padding: .6rem .3rem; white-space: normal; overflow-wrap: anywhere; }
}
`;

const body = html`<header class="bar">
<p id="status" role="status">Connecting</p>
<h1 id="title">Live session</h1>
<p id="viewers"></p>
<p id="control-status" role="status"></p>
<p id="hint">Shift+Esc releases the keyboard</p>
<button id="control-button" type="button" hidden>Take control</button>
<button id="share" type="button">Copy link</button>
</header>
<section class="tools" aria-label="Browser">
<div class="tabs"><ul id="tabs" aria-label="Tabs"></ul>
<button id="open" type="button" data-drives disabled aria-label="New tab">+</button></div>
<div class="group">
<button id="back" type="button" data-drives disabled aria-label="Back">&larr;</button>
<button id="forward" type="button" data-drives disabled aria-label="Forward">&rarr;</button>
<button id="reload" type="button" data-drives disabled aria-label="Reload">&#8635;</button>
</div>
<form id="go"><input id="address" aria-label="Address" enterkeyhint="go" readonly autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="8192" placeholder="Address">
<button data-drives disabled>Go</button></form>
<div class="group">
<button id="copy" type="button" data-drives disabled>Copy</button>
<button id="paste" type="button" data-drives disabled>Paste</button>
<button id="keyboard" type="button" data-drives disabled>Keyboard</button>
</div>
<details id="speed"><summary>Speed</summary> <span id="latency"></span></details>
</section>
<main class="stage">
<textarea id="keys" disabled aria-label="Keyboard of the page. Shift and Escape leave it." autocapitalize="off" autocomplete="off" autocorrect="off" spellcheck="false"></textarea>
<canvas id="picture" role="img" aria-label="The session, no picture yet" width="1280" height="720"></canvas>
<div id="messages">
<p id="notice" role="status"></p>
<form id="question" aria-labelledby="question-heading" hidden>
<p id="question-heading" role="status"></p>
<p id="question-message"></p>
<input id="question-text" aria-labelledby="question-message" autocomplete="off" maxlength="10000" hidden>
<select id="question-option" size="6" aria-labelledby="question-heading question-message" hidden></select>
<input id="question-files" type="file" aria-labelledby="question-heading" hidden>
<button id="question-no" type="button"></button>
<button id="question-yes"></button>
</form>
<ul id="downloads" aria-label="Downloads" aria-live="polite" hidden></ul>
</div></main>
<noscript><p class="single">This page needs JavaScript to show the live picture.</p></noscript>`;

const scriptHeaders = { "content-type": "text/javascript; charset=utf-8", "x-content-type-options": "nosniff" };

/** Resources of the page in addition to its own. */
interface LivePageOptions {
  /** Origins whose pages may embed the page in a frame. */
  readonly embedders: readonly string[];
  /** URL of the media server, if any. To connect to the media server, the page loads a second script of the service. */
  readonly mediaServer: string | undefined;
}

/** Mounts the page of view links. */
export function mountLivePage(fastify: FastifyInstance, { embedders, mediaServer }: LivePageOptions): void {
  const written = page("Live session", body, { style: ownStyle, script });
  // The console shows the page in a frame.
  const own = { connect: "'self'", embedders: ["'self'", ...embedders] };
  const headers = {
    ...pageHeadersFor(
      style + ownStyle,
      script,
      mediaServer === undefined ? own : { ...own, ...mediaSources(mediaServer) },
    ),
    "cache-control": "no-store",
  };
  fastify.get("/live", (_, reply) => reply.headers(headers).send(written));
  if (mediaServer === undefined) return;
  fastify.get(
    "/live/livekit.js",
    revalidated(() => readBuilt("livekit.js"), scriptHeaders),
  );
}

/**
 * Returns the CSP sources for the media server: WebSocket for signalling, HTTP for the request that explains a refusal.
 */
function mediaSources(mediaServer: string): { scripts: string; connect: string } {
  const { host, protocol } = new URL(mediaServer);
  const origins = protocol === "wss:" ? `wss://${host} https://${host}` : `ws://${host} http://${host}`;
  return { scripts: "'self'", connect: `'self' ${origins}` };
}
