import { Link } from "@tanstack/react-router";
import { Bot, Plus } from "lucide-react";
import { useState } from "react";
import { type AgentSession, AgentSessionService } from "../../../src/gen/pilothouse/v1/agent_session_pb.ts";
import { useList } from "../../api/lists.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState } from "../../ui/state.tsx";
import { Ago } from "../../ui/time.tsx";
import { SessionBadge } from "../sessions/session-words.tsx";
import { NewAgent } from "./new-agent.tsx";

export function AgentsPage() {
  const [isMaking, setMaking] = useState(false);
  const list = useList(AgentSessionService.method.list, {});
  const make = (
    <Button kind="primary" onClick={() => setMaking(true)}>
      <Plus size={15} aria-hidden="true" />
      New agent
    </Button>
  );
  return (
    <Page title="Agents" about="Models that drive a browser by messages. You can take over at any time." actions={make}>
      <Card isFlush>
        <List<AgentSession>
          list={list}
          label="Agent sessions"
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Agent",
              cell: ({ id, labels, instructions }) => (
                <span className="block min-w-0">
                  <Link to={pagePaths.agent} params={{ id }} className="font-medium hover:underline">
                    {labels.name ?? `Agent …${id.slice(-8)}`}
                  </Link>
                  {instructions !== undefined && (
                    <span className="line-clamp-1 text-xs text-faint">{instructions}</span>
                  )}
                </span>
              ),
            },
            {
              title: "Status",
              cell: ({ status, runningTurnId }) =>
                runningTurnId === undefined ? (
                  <SessionBadge status={status} />
                ) : (
                  <Badge tone="accent" isLive>
                    Working
                  </Badge>
                ),
            },
            {
              title: "Model",
              from: "lg",
              cell: ({ model }) => <span className="text-soft">{model ?? "default"}</span>,
            },
            { title: "Started", isRight: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
          ]}
          empty={
            <EmptyState icon={Bot} title="No agents yet" action={make}>
              Describe a task, watch the agent do it, and take over where it needs you.
            </EmptyState>
          }
        />
      </Card>
      {isMaking && <NewAgent onClose={() => setMaking(false)} />}
    </Page>
  );
}
