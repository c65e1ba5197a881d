import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { Bot, KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { type AgentSession, AgentSessionService } from "../../../src/gen/pilothouse/v1/agent_session_pb.ts";
import { LlmCredentialSource, LlmSettingsService } from "../../../src/gen/pilothouse/v1/llm_settings_pb.ts";
import { useList } from "../../api/lists.ts";
import { useIsManager } from "../../api/me.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState } from "../../ui/state.tsx";
import { Ago } from "../../ui/time.tsx";
import { SessionBadge } from "../sessions/session-words.tsx";
import { LlmKeyForm } from "../settings/llm-cards.tsx";
import { NewAgent } from "./new-agent.tsx";

export function AgentsPage() {
  const [isCreating, setCreating] = useState(false);
  const isManager = useIsManager();
  const list = useList(AgentSessionService.method.list, {});
  const models = useQuery(LlmSettingsService.method.getBundledLlmStatus, {});
  const lacksModel = models.data?.nextCredential === LlmCredentialSource.UNSPECIFIED;
  const needsKey = lacksModel && isManager;
  const close = (): void => setCreating(false);
  const createButton = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      <Plus size={15} aria-hidden="true" />
      {needsKey ? "Add an LLM key" : "New agent"}
    </Button>
  );
  return (
    <Page
      title="Agents"
      about="Models that drive a browser by messages. You can take over at any time."
      actions={createButton}
    >
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
            lacksModel ? (
              <EmptyState icon={KeyRound} title="Agents need a model" action={needsKey && createButton}>
                {isManager
                  ? "Add a key of an LLM provider. Then describe a task, and watch the agent do it."
                  : "An owner or admin of the account can add a key of an LLM provider in the settings."}
              </EmptyState>
            ) : (
              <EmptyState icon={Bot} title="No agents yet" action={createButton}>
                Describe a task, watch the agent do it, and take over where it needs you.
              </EmptyState>
            )
          }
        />
      </Card>
      {isCreating &&
        (needsKey ? (
          <Dialog
            title="Add an LLM key"
            about="Agents use it, and its provider charges you. It is stored encrypted, and can be removed in Settings."
            isOpen
            onClose={close}
          >
            <LlmKeyForm onCancel={close} />
          </Dialog>
        ) : (
          <NewAgent onClose={close} />
        ))}
    </Page>
  );
}
