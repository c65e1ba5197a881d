/** Style of the status page. Each colour is accompanied by a word. */
export const statusStyle = `
:root { --ok: #16794a; --slow: #b7791f; --some: #c2570c; --out: #c0292b; --work: #3b5bdb; --none: #cdd2da; }
@media (prefers-color-scheme: dark) {
  :root { --ok: #57d08f; --slow: #f0b34a; --some: #f0883e; --out: #ff8583; --work: #91a7ff; --none: #353d4a; }
}
.single { max-width: 52rem; padding: 3rem 1.5rem 1rem; }
.subscribe { padding-top: 0; padding-bottom: 4rem; }
.operational { --tone: var(--ok); } .degraded { --tone: var(--slow); } .partial_outage { --tone: var(--some); }
.major_outage { --tone: var(--out); } .maintenance { --tone: var(--work); } .none { --tone: var(--none); }
.headline { padding: 1rem 1.2rem; border: 1px solid var(--line); border-left: 6px solid var(--tone); border-radius: 10px;
  background: var(--shade); font-size: 1.5rem; }
h2 { margin: 2.4rem 0 .9rem; padding-top: 0; border-top: none; font-size: 1.15rem; }
.component { display: grid; grid-template-columns: 1fr auto; gap: .1rem 1rem; padding: 1rem 0; border-top: 1px solid var(--line); }
.component h3 { margin: 0; font-size: 1rem; }
.badge { margin: 0; font-weight: 600; color: var(--tone); }
.badge::before { content: ""; display: inline-block; width: .6rem; height: .6rem; margin-right: .45rem; border-radius: 50%;
  background: var(--tone); }
.component svg { grid-column: 1 / -1; display: block; width: 100%; height: 34px; margin-top: .4rem; }
rect { fill: var(--tone); }
.scale { grid-column: 1 / -1; display: flex; justify-content: space-between; margin: .2rem 0 0; color: var(--soft); font-size: 12.5px; }
.incident { margin: 0 0 1rem; padding: .9rem 1.1rem; border: 1px solid var(--line); border-left: 4px solid var(--tone); border-radius: 8px; }
.incident h3, .incident p { margin: 0; overflow-wrap: anywhere; }
.incident ul { margin: .6rem 0 0; padding: 0; list-style: none; }
.incident li { padding: .25rem 0; overflow-wrap: anywhere; }
.incident li time { display: block; color: var(--soft); font-size: 12.5px; }
.notice { padding: .8rem 1rem; border: 1px solid var(--line); border-left: 4px solid var(--slow); border-radius: 8px; }
form { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }
label { flex: 1 1 100%; font-size: 13.5px; color: var(--soft); }
input { flex: 1 1 14rem; min-width: 0; max-width: 24rem; padding: .6rem .8rem; font: inherit; font-size: 16px; color: inherit;
  background: var(--shade); border: 1px solid var(--soft); border-radius: 8px; }
form button { padding: .65rem 1.3rem; font: inherit; font-weight: 600; color: var(--on-button); background: var(--button); border: none;
  border-radius: 8px; cursor: pointer; }
form button:disabled { opacity: .55; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.fault { color: var(--delete); }
#outcome:empty { display: none; }
@media (max-width: 760px) {
  .single { padding: 1.6rem 1rem .5rem; }
  .headline { font-size: 1.25rem; }
}
`;
