const fonts = `"Inter", ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif`;
const codeFonts = `ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, monospace`;

/** Stylesheet of the service's pages, in the colours and fonts of the console. */
export const style = `
:root {
  --paper: #f7f8fa; --shade: #ffffff; --line: #e3e6eb; --ink: #14171f; --soft: #4d5667; --link: #2f4bc4;
  --button: #3b5bdb; --on-button: #ffffff;
  --code: #eef0f4; --get: #16794a; --post: #2f4bc4; --patch: #8f5a00; --delete: #c0292b; --ws: #6b3fb8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0b0d11; --shade: #111419; --line: #222831; --ink: #eceff4; --soft: #a9b2c1; --link: #91a7ff;
    --button: #4263eb; --on-button: #ffffff;
    --code: #1b2029; --get: #57d08f; --post: #91a7ff; --patch: #f0b34a; --delete: #ff8583; --ws: #bf9bff;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.55 ${fonts}; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre { font: 13px/1.5 ${codeFonts}; }
code { background: var(--code); border-radius: 4px; padding: .1em .3em; overflow-wrap: anywhere; }
pre { margin: .5rem 0; padding: .8rem 1rem; background: var(--shade); border: 1px solid var(--line);
  border-radius: 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
pre code { background: none; padding: 0; }
pre button { float: right; margin: -.3rem -.5rem 0 .5rem; padding: .1rem .5rem; font: 12px ${fonts};
  color: var(--soft); background: var(--paper); border: 1px solid var(--line); border-radius: 5px; cursor: pointer; }
pre button:hover { color: var(--ink); }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .8rem; }
h2 { font-size: 1.45rem; margin: 3.5rem 0 .5rem; padding-top: 1rem; border-top: 2px solid var(--line); }
h3 { font-size: 1.1rem; margin: 0 0 .2rem; }
h4 { font-size: .78rem; text-transform: uppercase; letter-spacing: .05em; color: var(--soft); margin: 1.4rem 0 .4rem; }
p { margin: .5rem 0; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
.reference { display: grid; grid-template-columns: 270px minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.4rem 1rem; background: var(--shade);
  border-right: 1px solid var(--line); font-size: 14px; }
nav strong { display: block; margin: 1.3rem 0 .3rem; }
nav .name { margin: 0 0 1rem; font-size: 1.1rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: flex; gap: .5rem; align-items: baseline; padding: .18rem .3rem; border-radius: 5px; color: var(--ink); }
nav li a:hover { background: var(--code); text-decoration: none; }
nav .verb { flex: 0 0 3.1rem; font-size: 10.5px; text-align: right; }
main { padding: 2rem 2.5rem 6rem; max-width: 1500px; }
main > p, main > ul, .intro { max-width: 46rem; }
.verb { font: 600 12px ${codeFonts}; }
.get { color: var(--get); } .post { color: var(--post); } .put, .patch { color: var(--patch); }
.delete { color: var(--delete); } .ws { color: var(--ws); }
.operation { padding: 1.8rem 0; border-top: 1px solid var(--line); display: grid; gap: 0 2.5rem;
  grid-template-columns: minmax(0, 1fr) minmax(0, 30rem); }
h2 + p + .operation { border-top: none; }
.operation > header { grid-column: 1 / -1; }
.route { margin: .1rem 0 .3rem; }
.route code { background: none; padding: 0; font-size: 14px; }
.examples > h4:first-child { margin-top: .6rem; }
.examples pre { max-height: 26rem; overflow-y: auto; }
table { width: 100%; border-collapse: collapse; font-size: 14px; }
td, th { text-align: left; vertical-align: top; padding: .5rem .8rem .5rem 0; border-top: 1px solid var(--line); }
th { font-weight: normal; width: 13rem; overflow-wrap: anywhere; }
th code { background: none; padding: 0; font-weight: 600; }
td p { margin: 0 0 .2rem; }
td time { white-space: nowrap; }
.type, .rule { color: var(--soft); font-size: 13px; }
.type { display: block; }
.needed { color: var(--delete); font-size: 12px; }
.problems { list-style: none; padding: 0; }
.problems b { display: inline-block; width: 2.6rem; font-weight: 500; }
.inside > td { padding: 0 0 .6rem .8rem; border-top: none; }
details { margin: .2rem 0; }
summary span { color: var(--ink); }
summary { cursor: pointer; color: var(--link); font-size: 13.5px; }
details > table { border-left: 2px solid var(--line); border-collapse: separate; border-spacing: 0; margin: .3rem 0 .6rem .2rem; }
details > table td, details > table th { padding-left: .8rem; }
.single { max-width: 44rem; margin: 0 auto; padding: 4rem 1.5rem; }
.status { color: var(--soft); font-size: 1rem; margin: 0 0 .3rem; }
@media (max-width: 1100px) { .operation { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 760px) {
  .reference { grid-template-columns: minmax(0, 1fr); }
  nav { position: static; height: auto; border-right: none; border-bottom: 1px solid var(--line); }
  main { padding: 1.5rem 1rem 4rem; }
  th { width: 8.5rem; }
  .single { padding: 2rem 1rem; }
}
`;
