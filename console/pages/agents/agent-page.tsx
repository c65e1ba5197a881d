import { create } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { useParams } from "@tanstack/react-router";
import { CircleStop, MonitorOff } from "lucide-react";
import {
  type AgentSession,
  AgentSessionSchema,
  AgentSessionService,
} from "../../../src/gen/pilothouse/v1/agent_session_pb.ts";
import { SessionStatus } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { problemOf } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Id } from "../../ui/copy.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState, Loaded } from "../../ui/state.tsx";
import { LiveView } from "../sessions/live-view.tsx";
import { isRunning, SessionBadge } from "../sessions/session-words.tsx";
import { Chat } from "./chat.tsx";

export function AgentPage() {
  const { id } = useParams({ from: "/inside/agents/$id" });
  const agent = useQuery(AgentSessionService.method.get, { id });
  // The API refuses an ended agent session. Its transcript stays, and the list has the rest.
  const hasEnded = agent.error !== null && problemOf(agent.error).slug === "session-destroyed";
  const list = useQuery(AgentSessionService.method.list, { limit: 100 }, { enabled: hasEnded && !agent.data });
  if (!hasEnded)
    return (
      <Loaded query={agent} lines={8}>
        {(data) => <Agent agent={data} />}
      </Loaded>
    );
  const data = agent.data ?? list.data?.data.find((each) => each.id === id) ?? create(AgentSessionSchema, { id });
  return <Agent agent={{ ...data, status: SessionStatus.DESTROYED }} />;
}

function Agent({ agent }: { readonly agent: AgentSession }) {
  const { id, sessionId, status, labels } = agent;
  const destroy = useChange(AgentSessionService.method.destroy, { changes: [AgentSessionService] });
  const title = labels.name ?? `Agent …${id.slice(-8)}`;
  const isLive = isRunning(status);
  return (
    <Page
      title={title}
      heading={
        <>
          <span className="min-w-0 truncate">{title}</span>
          <SessionBadge status={status} />
        </>
      }
      about={<Id value={id} />}
      actions={
        isLive && (
          <Confirm
            trigger={
              <Button kind="danger">
                <CircleStop size={15} aria-hidden="true" />
                End
              </Button>
            }
            title="End the agent?"
            action="End the agent"
            onConfirm={() => destroy.runAsync({ id })}
            problem={destroy.problem}
          >
            Its turn is cancelled, and a browser that it started closes. The transcript stays for 90 days.
          </Confirm>
        )
      }
    >
      <div className="grid items-stretch gap-5 lg:h-[calc(100dvh-11rem)] lg:min-h-[32rem] lg:grid-cols-[1fr_24rem]">
        {isLive ? (
          <LiveView sessionId={sessionId} className="h-[42dvh] min-h-72 lg:h-auto" />
        ) : (
          <div className="grid place-items-center rounded-xl border border-line bg-sunken">
            <EmptyState icon={MonitorOff} title="The browser has ended" />
          </div>
        )}
        <Chat agent={agent} />
      </div>
    </Page>
  );
}
