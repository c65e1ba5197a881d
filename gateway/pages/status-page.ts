import type { FastifyInstance, FastifyRequest } from "fastify";
import { asFailure } from "../../src/platform/errors.ts";
import { type Html, html } from "../../src/platform/html.ts";
import { componentLabels, type Health, healthWords } from "../../src/status/components.ts";
import type { Day, DayHistory } from "../../src/status/days.ts";
import { healthOf, isOngoing, type Snapshot } from "../../src/status/snapshot.ts";
import type { Status } from "../../src/status/status.ts";
import type { StoredIncident } from "../../src/status/store.ts";
import { pageHeadersFor } from "./content-policy.ts";
import { page } from "./shell.ts";
import { statusScript } from "./status-script.ts";
import { statusStyle } from "./status-style.ts";
import { style } from "./style.ts";

/** Headlines by state of the whole service. */
const headlines: Readonly<Record<Health, string>> = {
  operational: "All systems are operational",
  maintenance: "Maintenance is in progress",
  degraded: "Some parts of the service are degraded",
  partial_outage: "Some parts of the service are down",
  major_outage: "Major outage",
};

const badges: Readonly<Record<Health, string>> = {
  operational: "Operational",
  maintenance: "Maintenance",
  degraded: "Degraded",
  partial_outage: "Partial outage",
  major_outage: "Major outage",
};

const headers = {
  ...pageHeadersFor(style + statusStyle, statusScript, { connect: "'self'", forms: "'self'" }),
  "cache-control": "no-cache",
};

/** Maximum number of past incidents shown. */
const shownIncidents = 20;

const clockOf = (time: number): string => `${new Date(time).toISOString().slice(0, 16).replace("T", " ")} UTC`;
const timeOf = (time: number): Html => html`<time datetime="${new Date(time).toISOString()}">${clockOf(time)}</time>`;

function minutesOf(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function describeDay({ date, health, downSeconds }: Day): string {
  if (!health) return `${date}: no data`;
  return `${date}: ${downSeconds > 0 ? `down for ${minutesOf(downSeconds)}` : healthWords[health]}`;
}

/** Renders days as bars. The bars have the role of one image, so that screen readers do not read ninety labels. */
function barsOf({ days, percent }: DayHistory): Html {
  const bars = days.map(
    (day, index) =>
      html`<rect class="${day.health ?? "none"}" x="${index * 10}" width="7" height="34"><title>${describeDay(day)}</title></rect>`,
  );
  const bad = days.filter(({ downSeconds }) => downSeconds > 0);
  const uptime = percent === undefined ? "No data" : `${percent} % uptime`;
  const summary = `${uptime} in the last 90 days. ${bad.length === 0 ? "No outages." : bad.map(describeDay).join(". ")}`;
  return html`<svg role="img" aria-label="${summary}" viewBox="0 0 897 34" preserveAspectRatio="none">${bars}</svg>
<p class="scale"><span>90 days ago</span><span>${percent === undefined ? "no data" : `${percent} % uptime`}</span><span>today</span></p>`;
}

const emptyDays: DayHistory = { days: [], percent: undefined };

function incidentOf(incident: StoredIncident, at: number): Html {
  const { id, title, health, components, startedAt, resolvedAt, updates } = incident;
  const isOn = isOngoing(incident, at);
  const labels = components.map((name) => componentLabels[name]).join(", ");
  const end = resolvedAt !== undefined && html` to ${timeOf(resolvedAt)}`;
  return html`<article id="${id}" class="incident ${isOn || startedAt > at ? health : "operational"}">
<h3>${title}</h3>
<p class="rule">${isOn ? badges[health] : startedAt > at ? "Scheduled" : "Resolved"} · ${labels} · ${timeOf(startedAt)}${end}</p>
<ul>${updates.map(({ text, at: postedAt }) => html`<li>${timeOf(postedAt)} ${text}</li>`)}</ul>
</article>`;
}

function incidentsOf(heading: string, incidents: readonly StoredIncident[], at: number): Html | false {
  return incidents.length > 0 && html`<h2>${heading}</h2>${incidents.map((incident) => incidentOf(incident, at))}`;
}

/** Result of a subscription, shown on the page. */
interface Outcome {
  readonly text: string;
  readonly isFault: boolean;
}

function renderStatus(snapshot: Snapshot, histories: ReadonlyMap<string, DayHistory>, outcome?: Outcome): string {
  const { at, isDatabaseDown, components, incidents } = snapshot;
  const health = healthOf(snapshot);
  const [now, coming, past] = [
    incidents.filter((incident) => isOngoing(incident, at)),
    incidents.filter(({ startedAt }) => startedAt > at),
    incidents.filter((incident) => incident.startedAt <= at && !isOngoing(incident, at)).slice(0, shownIncidents),
  ];
  const away =
    isDatabaseDown &&
    html`<p class="notice" role="status">The service cannot reach its database. The current state is what this server
observes; everything else is the last known state.</p>`;
  const rows = components.map(
    ({ component, health: own, since }) => html`<section class="component ${own}">
<h3>${componentLabels[component]}</h3><p class="badge" title="since ${clockOf(since)}">${badges[own]}</p>
${barsOf(histories.get(component) ?? emptyDays)}
</section>`,
  );
  const body = html`<main class="single" id="status" data-status="${health}" data-incidents="${now.map(({ id, updates }) => `${id} ${updates.length}`).join()}">
<p class="status">Pilothouse</p>
<h1 class="headline ${health}">${headlines[health]}</h1>
<p class="rule">As of ${timeOf(at)}. <span id="live"></span></p>
${away}
${incidentsOf("Current incidents", now, at)}
${incidentsOf("Scheduled maintenance", coming, at)}
<h2>Components</h2>
${components.length === 0 ? html`<p>There is no data yet.</p>` : rows}
<h2>Past incidents</h2>
${past.length === 0 ? html`<p>No incidents in the last 90 days.</p>` : past.map((incident) => incidentOf(incident, at))}
</main>
<section class="single subscribe" aria-labelledby="subscribe">
<h2 id="subscribe">Get updates by e-mail</h2>
<p>You receive an e-mail when an incident opens, changes or ends. First we send a link to confirm your address.</p>
<form method="post" action="/status/subscribe"><label for="email">E-mail address</label>
<input id="email" name="email" type="email" autocomplete="email" maxlength="254" required>
<button>Subscribe</button></form>
<p id="outcome" role="status"${outcome?.isFault && html` class="fault"`}>${outcome?.text}</p>
<p class="rule">For programs: the status as <a href="/v1/status">JSON</a>, and its event stream in the <a href="/docs">API reference</a>.</p>
</section>`;
  return page(`Status: ${headlines[health]}`, body, { style: statusStyle, script: statusScript });
}

/** Returns the e-mail address in a submitted form, or "". */
function emailOf(body: unknown): string {
  const fields = new URLSearchParams(body instanceof Buffer ? body.toString() : "");
  return fields.get("email")?.trim() ?? "";
}

const isEmail = (text: string): boolean => text.length <= 254 && /^[^\s@<>,;]{1,64}@[^\s@<>,;]{1,255}$/.test(text);

async function subscribe(status: Status, request: FastifyRequest, clientAddress: string): Promise<Outcome> {
  const email = emailOf(request.body);
  if (!isEmail(email)) return { text: "Enter a valid e-mail address, such as ada@example.com.", isFault: true };
  try {
    await status.subscriptions.subscribe(email, clientAddress);
    return { text: `We have sent a link to confirm the subscription to ${email}.`, isFault: false };
  } catch (thrown) {
    const { detail, slug } = asFailure(thrown);
    if (slug === "internal") request.log.error({ err: thrown }, "failed to subscribe to status updates");
    return { text: `The subscription failed: ${detail ?? "try again later"}.`, isFault: true };
  }
}

/** Mounts the public status page. It needs no bearer, and is served from memory while PostgreSQL is unavailable. */
export function mountStatusPage(
  fastify: FastifyInstance,
  status: Status,
  addressOf: (request: FastifyRequest["raw"]) => string,
): void {
  const render = async (outcome?: Outcome) => renderStatus(status.feed.now, await status.history.read(), outcome);
  let kept: { readonly of: Snapshot; readonly text: Promise<string> } | undefined;
  fastify.get("/status", async (_, reply) => {
    const { now } = status.feed;
    // Renders the page once per sample of the status.
    if (kept?.of !== now) kept = { of: now, text: render() };
    return reply.headers(headers).send(await kept.text);
  });
  fastify.post("/status/subscribe", async (request, reply) => {
    const outcome = await subscribe(status, request, addressOf(request.raw));
    return reply
      .code(outcome.isFault ? 400 : 200)
      .headers(headers)
      .send(await render(outcome));
  });
}
