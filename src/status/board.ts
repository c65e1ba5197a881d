import type { Ids } from "../platform/ids.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { type ComponentName, componentNames, type Health, isDown, worstOf } from "./components.ts";
import { findMaintenance, type IncidentRow, lockUnresolved } from "./incident-store.ts";
import { declaredHealth, insertAbsence, updateAutomaticIncident } from "./incidents.ts";
import { type Facts, type Pace, type States, stepAll } from "./judgement.ts";
import {
  bumpVersion,
  endSpans,
  insertSpans,
  lockBoard,
  type OpenSpan,
  readFacts,
  readOpenSpans,
  type StoredBoard,
  saveBoard,
  saveFacts,
} from "./store.ts";

/** Facts that one gateway sampled. */
export interface Sample {
  readonly at: number;
  readonly facts: Facts;
}

interface JudgementParts {
  readonly ids: Ids;
  readonly pace: Pace;
  /** Whether time without samples counts as an outage. If false, such time is not counted. */
  readonly countsAbsence: boolean;
}

/**
 * Stores a gateway's sample and judges the samples of all gateways. Returns the version of the board. A sample that
 * is not newer than the last judged sample is only stored.
 */
export async function judgeSample(
  tx: Tx,
  gateway: string,
  { at, facts }: Sample,
  parts: JudgementParts,
): Promise<bigint> {
  const { pace, ids } = parts;
  const now = new Date(at);
  const board = await lockBoard(tx);
  saveFacts(tx, gateway, now, facts);
  if (board.judgedAt !== undefined && at <= board.judgedAt) return board.version;
  const [kept, spans, incidents] = await Promise.all([readFacts(tx), readOpenSpans(tx), lockUnresolved(tx, now)]);
  const isAbsence = board.judgedAt !== undefined && at - board.judgedAt > pace.silentAfter;
  if (isAbsence) await recordAbsence(tx, board, spans, now, parts);

  const ages = kept.map((row) => ({ age: at - row.sampled_at.getTime(), facts: row.facts }));
  const present = ages.filter(({ age }) => age < pace.silentAfter).map((each) => each.facts);
  const before = isAbsence ? settled(board.states) : board.states;
  // After an absence or outage, gateways return one after the other, so missing gateways are ignored.
  const isMissed = ({ age }: { readonly age: number }) => age >= pace.silentAfter && age < pace.forgetAfter;
  const silent = isAbsence || isDown(before.api?.health ?? "operational") ? 0 : ages.filter(isMissed).length;
  const states = stepAll(before, present, silent, at, pace);
  const shown = componentNames.flatMap((component) => {
    const state = states[component];
    if (!state) return [];
    const declared = declaredHealth(incidents, component, at);
    return { component, health: declared === "maintenance" ? declared : worstOf([declared, state.health]) };
  });
  const hasChanged = updateSpans(tx, isAbsence ? [] : spans, shown, now);
  saveBoard(tx, states, now);
  if (hasChanged || hasBegun(incidents, board, at)) bumpVersion(tx);
  const inMaintenance = new Set(shown.filter(({ health }) => health === "maintenance").map((each) => each.component));
  const open = incidents.find(({ origin, resolved_at: end }) => origin === "automatic" && end === null);
  updateAutomaticIncident(tx, open, { before, after: states, inMaintenance }, now, ids);
  return (await lockBoard(tx)).version;
}

/** Discards pending changes, which are meaningless after an absence. */
function settled(states: States): States {
  return Object.fromEntries(Object.entries(states).map(([name, { health }]) => [name, { health }]));
}

/** Returns whether an incident began since the last judgement. Planned maintenance begins without an update. */
function hasBegun(incidents: readonly IncidentRow[], { judgedAt = 0 }: StoredBoard, at: number): boolean {
  return incidents.some(({ started_at: from }) => from.getTime() > judgedAt && from.getTime() <= at);
}

/** Ends the open spans of components with changed health, and starts new spans. Returns whether any health changed. */
function updateSpans(tx: Tx, before: readonly OpenSpan[], after: readonly OpenSpan[], at: Date): boolean {
  const isIn = (those: readonly OpenSpan[], { component, health }: OpenSpan): boolean =>
    those.some((each) => each.component === component && each.health === health);
  const ended = before.filter((span) => !isIn(after, span));
  const begun = after.filter((span) => !isIn(before, span));
  if (ended.length > 0)
    endSpans(
      tx,
      ended.map(({ component }) => component),
      at,
    );
  if (begun.length > 0)
    insertSpans(
      tx,
      begun.map((span) => ({ ...span, from: at })),
    );
  return ended.length + begun.length > 0;
}

/**
 * Ends open spans at the last sample. If absence counts, records the time since that sample as an outage, except for
 * announced maintenance.
 */
async function recordAbsence(
  tx: Tx,
  { judgedAt = 0 }: StoredBoard,
  spans: readonly OpenSpan[],
  to: Date,
  parts: JudgementParts,
) {
  const from = new Date(judgedAt);
  const components = spans.map(({ component }) => component);
  if (components.length === 0) return;
  endSpans(tx, components, from);
  if (!parts.countsAbsence) return;
  const announced = await findMaintenance(tx, from, to);
  const absences = components.flatMap((component) => splitBy(announced, component, from, to));
  insertSpans(tx, absences);
  const missed = components.filter((name) => absences.some((each) => each.component === name && isOutage(each.health)));
  if (missed.length > 0) insertAbsence(tx, missed, from, to, parts.ids);
}

const isOutage = (health: Health): boolean => health !== "maintenance";

/** Splits a time range by whether maintenance was announced for the component. */
function splitBy(announced: readonly IncidentRow[], component: ComponentName, from: Date, to: Date) {
  const own = announced.filter(({ components }) => components.includes(component));
  const edges = own.flatMap(({ started_at: begin, resolved_at: end }) => [begin, end ?? to]);
  const inside = edges.map((edge) => edge.getTime()).filter((edge) => edge > from.getTime() && edge < to.getTime());
  const cuts = [...new Set([from.getTime(), ...inside, to.getTime()])].toSorted((one, other) => one - other);
  return cuts.slice(1).map((end, index) => {
    const begin = cuts[index] ?? end;
    const isAnnounced = own.some(
      (each) => each.started_at.getTime() <= begin && (each.resolved_at ?? to).getTime() >= end,
    );
    const health: Health = isAnnounced ? "maintenance" : "major_outage";
    return { component, health, from: new Date(begin), to: new Date(end) };
  });
}
