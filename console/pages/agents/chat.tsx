import { useQuery } from "@connectrpc/connect-query";
import { ArrowDown, ArrowUp, Square } from "lucide-react";
import { type KeyboardEvent, type UIEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { AgentSession } from "../../../src/gen/pilothouse/v1/agent_session_pb.ts";
import {
  AgentTurnService,
  type TranscriptEntry,
  type Turn,
  TurnStatus,
} from "../../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import { useList } from "../../api/lists.ts";
import { toSentence } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { TextField } from "../../ui/field.tsx";
import { Loaded } from "../../ui/state.tsx";
import { useVirtualRowsIn } from "../../ui/virtual.ts";
import { isRunning } from "../sessions/session-words.tsx";
import { AgentProblemNotice } from "./new-agent.tsx";
import { tableOf } from "./table-schema.ts";
import { Entry } from "./transcript-entry.tsx";

/** The conversation with an agent: messages, steps, and what the turn waits for. */
export function Chat({ agent }: { readonly agent: AgentSession }) {
  const { id, runningTurnId, status } = agent;
  const transcript = useList(AgentTurnService.method.getTranscript, { id, limit: 100 });
  const entries = transcript.data ?? [];
  const lastTurnId = runningTurnId ?? entries.findLast(({ turnId }) => turnId !== undefined)?.turnId;
  const turn = useQuery(
    AgentTurnService.method.getTurn,
    { id, turnId: lastTurnId ?? "" },
    { enabled: lastTurnId !== undefined },
  );
  const { error, hasMore, isLoadingMore, loadMore } = transcript;
  useEffect(() => {
    if (hasMore && !isLoadingMore && !error) loadMore();
  }, [error, hasMore, isLoadingMore, loadMore]);
  return (
    <section
      aria-label="Conversation"
      className="flex max-h-[75dvh] min-h-96 min-w-0 flex-col rounded-xl border border-line bg-surface shadow-low lg:max-h-none"
    >
      <Loaded query={transcript}>{() => <Entries agentId={id} entries={entries} turn={turn.data} />}</Loaded>
      {isRunning(status) && <Composer agentId={id} runningTurnId={runningTurnId} />}
    </section>
  );
}

interface EntriesProps {
  readonly agentId: string;
  readonly entries: readonly TranscriptEntry[];
  readonly turn: Turn | undefined;
}

/** Height of a step that is closed, with its gap, in pixels. */
const stepHeight = 46;

/** Distance from the end, in pixels, within which a reader follows new entries. */
const nearEnd = 80;

function Entries({ agentId, entries, turn }: EntriesProps) {
  const box = useRef<HTMLDivElement>(null);
  const lastTop = useRef(0);
  // Whether a person may be scrolling. The list also scrolls by itself, when heights differ from the estimates.
  const isTouched = useRef(false);
  const [isFollowing, setFollowing] = useState(true);
  const { indexes, before, after, measure } = useVirtualRowsIn(box, entries, ({ id }) => id, stepHeight);
  const follow = (): void => box.current?.scrollTo({ top: box.current.scrollHeight });
  // Heights change after each render too, because those of new rows are estimates at first.
  useLayoutEffect(() => {
    if (isFollowing) follow();
  });
  const touch = (): void => {
    isTouched.current = true;
  };
  const onScroll = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent): void => {
    if (scrollHeight - scrollTop - clientHeight < nearEnd) setFollowing(true);
    else if (isTouched.current && scrollTop < lastTop.current) setFollowing(false);
    lastTop.current = scrollTop;
  };
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div
        ref={box}
        role="log"
        aria-label="Messages and steps"
        // Old entries that reappear while scrolling are not announced.
        aria-live={isFollowing ? "polite" : "off"}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        tabIndex={0}
        onScroll={onScroll}
        onWheel={touch}
        onPointerDown={touch}
        onKeyDown={touch}
        className="flex-1 overflow-y-auto rounded-t-xl p-4 -outline-offset-2"
      >
        {entries.length === 0 && (
          <p className="text-sm text-soft">Send a message to start. The agent sees the page as text.</p>
        )}
        <div style={{ paddingTop: before, paddingBottom: after }}>
          {indexes.map((index) => {
            const entry = entries[index];
            return (
              entry && (
                <div key={entry.id} ref={measure} data-index={index} className="pb-3">
                  <Entry agentId={agentId} entry={entry} onOpen={() => setFollowing(false)} />
                </div>
              )
            );
          })}
        </div>
        {turn && <TurnState turn={turn} />}
      </div>
      {!isFollowing && (
        <Button
          size="small"
          className="absolute bottom-3 self-center"
          onClick={() => {
            isTouched.current = false;
            setFollowing(true);
            follow();
          }}
        >
          <ArrowDown size={13} aria-hidden="true" />
          Latest step
        </Button>
      )}
    </div>
  );
}

const waits: Readonly<Record<string, string>> = {
  person_needed: "The agent needs you. Take control in the browser, do what it asks, and hand back.",
  takeover: "A person has control. The agent continues after the handback.",
  challenge: "A bot check needs a person. Take control and pass it.",
};

function TurnState({ turn }: { readonly turn: Turn }) {
  const { status, reason = "", steps, tokens, costCents, error } = turn;
  const cost = costCents === undefined ? "" : `, $${(costCents / 100).toFixed(2)}`;
  const figures = `${steps} ${steps === 1 ? "step" : "steps"}, ${tokens.toLocaleString()} tokens${cost}`;
  if (status === TurnStatus.WAITING_FOR_PERSON) {
    return (
      <p className="rounded-lg bg-warn-wash px-3 py-2 text-sm text-warn">
        {waits[reason] ?? "The agent waits for a person."}
      </p>
    );
  }
  if (status === TurnStatus.FAILED || status === TurnStatus.LIMIT_REACHED) {
    const why =
      error?.detail ?? error?.title ?? (status === TurnStatus.FAILED ? reason : `the limit of ${reason} was reached`);
    return <p className="rounded-lg bg-bad-wash px-3 py-2 text-sm text-bad">{toSentence(why)}</p>;
  }
  const isWorking = status === TurnStatus.QUEUED || status === TurnStatus.RUNNING;
  return (
    <p className="flex items-center gap-2 text-xs text-faint">
      {isWorking && <span aria-hidden="true" className="size-1.5 animate-pulse rounded-full bg-accent" />}
      {isWorking ? `Working: ${figures}` : status === TurnStatus.CANCELLED ? `Cancelled: ${figures}` : figures}
    </p>
  );
}

interface ComposerProps {
  readonly agentId: string;
  readonly runningTurnId: string | undefined;
}

function Composer({ agentId: id, runningTurnId }: ComposerProps) {
  const [text, setText] = useState("");
  const [columns, setColumns] = useState<string>();
  const changes = [AgentTurnService];
  const send = useChange(AgentTurnService.method.sendMessage, { changes, onDone: () => setText("") });
  const cancel = useChange(AgentTurnService.method.cancelTurn, { changes });
  const submit = (): void => {
    if (text.trim() === "" || send.isPending) return;
    send.run({ id, text: text.trim(), ...tableOf(columns) });
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      className="flex flex-col gap-2 border-t border-line p-3"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <AgentProblemNotice problem={send.problem ?? cancel.problem} />
      {columns !== undefined && (
        <TextField
          label="Columns of the result"
          placeholder="name, price"
          value={columns}
          onChange={({ target }) => setColumns(target.value)}
        />
      )}
      <div className="rounded-xl border border-line-strong bg-surface shadow-low focus-within:border-accent">
        <textarea
          aria-label="Message to the agent"
          placeholder="Message"
          rows={2}
          maxLength={32_768}
          value={text}
          onChange={({ target }) => setText(target.value)}
          onKeyDown={press}
          className="block w-full resize-none bg-transparent px-3 pt-2.5 text-sm outline-none"
        />
        <div className="flex items-center justify-between p-1.5">
          <button
            type="button"
            aria-pressed={columns !== undefined}
            onClick={() => setColumns(columns === undefined ? "" : undefined)}
            className="rounded-md px-2 py-1 text-xs text-soft hover:bg-hover aria-pressed:bg-accent-wash aria-pressed:text-accent-text"
          >
            Result as a table
          </button>
          <span className="flex gap-1">
            {runningTurnId !== undefined && (
              <IconButton
                label="Cancel the turn"
                size="small"
                isPending={cancel.isPending}
                onClick={() => cancel.run({ id, turnId: runningTurnId })}
              >
                <Square size={13} aria-hidden="true" />
              </IconButton>
            )}
            <IconButton
              label="Send"
              kind="primary"
              size="small"
              type="submit"
              disabled={text.trim() === ""}
              isPending={send.isPending}
            >
              <ArrowUp size={14} aria-hidden="true" />
            </IconButton>
          </span>
        </div>
      </div>
    </form>
  );
}
