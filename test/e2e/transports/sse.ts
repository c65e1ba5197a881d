import { expect, test } from "vitest";
import { restClient } from "../../support/rest.ts";
import { eventsOf } from "../support/embedded-database.ts";
import type { GetScene } from "./scene.ts";

/** Event as sent over Server-Sent Events. */
interface ReceivedEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: { readonly id?: string; readonly type: string; readonly data: Record<string, unknown> };
}

function parse(text: string): ReceivedEvent[] {
  const frames = text.split("\n\n").filter((frame) => frame !== "" && !frame.startsWith(":"));
  return frames.map((frame) => {
    const fields = Object.fromEntries(frame.split("\n").map((line) => line.split(/: (.*)/s)));
    return { id: fields.id, event: fields.event, data: JSON.parse(fields.data ?? "null") };
  });
}

/** Streams of Server-Sent Events. */
export function sseTests(scene: GetScene): void {
  test("events carry IDs, a stream resumes after any of them, and ends after the terminal event", async () => {
    const { service, site } = scene();
    const rest = restClient(service);
    const { body: session } = await rest("/v1/sessions", {});
    const path = `/v1/sessions/${session.id}`;
    const open = () => fetch(`${service.url}${path}/events`, { headers: { authorization: `Bearer ${service.key}` } });
    // The first frames have the id after which the stream starts, so that a stream without events can be resumed.
    let opening = "";
    let startId: string | undefined;
    for await (const part of (await open()).body?.pipeThrough(new TextDecoderStream()) ?? []) {
      opening += part;
      startId = /^(?:: open\n\n)?: open\nid: (evt_[0-9a-z]{26})\n\n$/.exec(opening)?.[1];
      if (startId) break;
    }
    const stream = await open();
    expect(stream.headers.get("content-type")).toBe("text/event-stream");
    expect(stream.headers.get("x-ratelimit-bucket")).toBe("global");
    const received = stream.text();
    await rest(`${path}/navigate`, { url: site.url("/console.html") });
    await rest(path, undefined, { method: "DELETE" });
    const events = parse(await received);
    const last = events.at(-1);
    expect(last).toMatchObject({ event: "session.completed", data: { data: { session_id: session.id } } });
    expect(last?.id).toMatch(/^evt_[0-9a-z]{26}$/);
    for (const { id, event, data } of events) expect([data.id, data.type]).toEqual([id, event]);
    // Live page events precede the end of the session. They are not stored, so they have no ID.
    expect(events.length).toBeGreaterThan(1);
    expect(events.slice(0, -1).every(({ id }) => id === undefined)).toBe(true);

    const rows = await eventsOf(service, session.id);
    expect(rows.map(({ type }) => type)).toEqual(["session.created", "session.live", "session.completed"]);
    expect(rows.slice(0, 2).map(({ id }) => id)).toContain(startId);
    const resume = (id: string) => rest(`${path}/events`, undefined, { headers: { "last-event-id": id } });
    for (const [index, { id }] of rows.slice(0, -1).entries()) {
      const answer = await resume(id);
      expect(answer.status).toBe(200);
      expect(parse(answer.body).map((event) => event.id)).toEqual(rows.slice(index + 1).map((row) => row.id));
    }
    expect((await resume(rows.at(-1)?.id ?? "")).status).toBe(410);
    const missing = { status: 404, body: { type: expect.stringMatching(/\/not-found$/) } };
    for (const id of ["evt_bad", ""]) expect(await resume(id)).toMatchObject(missing);
    expect((await rest(`${path}/events`)).body.type).toMatch(/\/session-destroyed$/);
  });
}
