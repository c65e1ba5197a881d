import type { ExtractForAccount } from "../../src/agents/turns/account-extraction.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { runAgentTool, runRecipeTool } from "./agent-tools.ts";
import { createExtractTool } from "./extract-tool.ts";
import { actTool, navigateTool, observeTool, readTool, screenshotTool } from "./page-tools.ts";
import { endSessionTool, filesTool, listSessionsTool, startSessionTool } from "./session-tools.ts";
import type { Tool } from "./tool.ts";
import { createWaitTools } from "./wait-tools.ts";

/** Creates all tools of the MCP server. Their order is part of the prompts that clients cache. */
export function createTools(clock: Pick<Clock, "now">, extract: ExtractForAccount): readonly Tool[] {
  const { askPersonTool, waitTool } = createWaitTools(clock);
  return [
    startSessionTool,
    listSessionsTool,
    endSessionTool,
    navigateTool,
    observeTool,
    actTool,
    waitTool,
    readTool,
    createExtractTool(extract),
    screenshotTool,
    filesTool,
    runAgentTool,
    runRecipeTool,
    askPersonTool,
  ];
}
