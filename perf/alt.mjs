// alternates windows over sides: node alt.mjs ROUNDS name=clone ...
import { fork } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";

const autocannon = createRequire("/srv/ph/perf/package.json")("autocannon");
const rounds = +process.argv[2];
const N = 3000;
const sides = [];
for (const a of process.argv.slice(3)) {
  const [name, dir] = a.split("=");
  const kind = name === "bare" ? "bare" : "gateway";
  const p = fork(`${dir}/test/bench/path-server.ts`, [kind], {
    cwd: dir,
    execArgv: (process.env.EXEC ?? "").split(" ").filter(Boolean),
  });
  const [ready] = await once(p, "message");
  sides.push({ name, p, ready, s: [] });
}
async function cpu(p) {
  const a = once(p, "message");
  p.send("cpu");
  const [u] = await a;
  return u.user + u.system;
}
async function measure({ p, ready }) {
  const b = await cpu(p);
  const o = await autocannon({
    url: `${ready.url}/v1/sessions/ses_01m7zs46t8atn5y12r8fhb0faf/navigate`,
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${ready.key}` },
    body: JSON.stringify({ url: "https://example.com/order", wait_until: "load" }),
    connections: 50,
    amount: N,
  });
  if (o["2xx"] !== N) throw new Error("not all 2xx " + JSON.stringify(o.statusCodeStats));
  return ((await cpu(p)) - b) / N;
}
const warm = +(process.env.WARM ?? 10);
for (let r = 0; r < rounds + warm; r++)
  for (const s of sides) {
    const m = await measure(s);
    if (r >= warm) s.s.push(m);
  }
for (const s of sides) {
  const v = s.s.sort((a, b) => a - b);
  console.log(
    s.name.padEnd(10),
    "least",
    v[0].toFixed(1),
    "q1",
    v[v.length >> 2].toFixed(1),
    "median",
    v[v.length >> 1].toFixed(1),
  );
  s.p.disconnect();
}
await Promise.all(sides.map((s) => once(s.p, "exit")));
process.exit(0);
