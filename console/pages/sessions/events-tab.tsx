import { Radio } from "lucide-react";
import { useState } from "react";
import type { Event } from "../../../src/gen/pilothouse/v1/common_pb.ts";
import { SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { useStream } from "../../api/stream.ts";
import { Card } from "../../ui/card.tsx";
import { Entries, type TimedEntry } from "../../ui/entries.tsx";
import { EmptyState } from "../../ui/state.tsx";

/** Maximum number of events shown. The oldest events are dropped. */
const keptEvents = 500;

interface Received {
  readonly number: number;
  readonly event: Event;
}

function entryOf({ number, event: { type, createdAt, data = {} } }: Received): TimedEntry {
  const { session_id: _, ...rest } = data;
  return { key: String(number), at: createdAt, type, tone: "neutral", text: JSON.stringify(rest) };
}

/** Events of a running session from now on, newest first. */
export function EventsTab({ sessionId: id }: { readonly sessionId: string }) {
  const [received, setReceived] = useState<readonly Received[]>([]);
  useStream(SessionService.method.watch, {
    id,
    request: () => {
      const afterEventId = received.find(({ event }) => event.id !== undefined)?.event.id;
      return { id, ...(afterEventId !== undefined && { afterEventId }) };
    },
    onMessage: (event) =>
      setReceived((before) => [{ number: (before[0]?.number ?? 0) + 1, event }, ...before].slice(0, keptEvents)),
  });
  return (
    <Card title="Events" about="What happens from now on, newest first, as the stream of the session shows it." isFlush>
      {received.length === 0 ? (
        <EmptyState icon={Radio} title="Waiting for events">
          Use the browser: pages that open, dialogs, downloads and changes of control appear here.
        </EmptyState>
      ) : (
        <Entries label="Events" entries={received.map(entryOf)} />
      )}
    </Card>
  );
}
