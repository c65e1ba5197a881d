import type { ModelConversation } from "./model-conversation.ts";

/** Maximum estimated tokens of all kept conversations, about 1.5 MB of text. */
const maxTokens = 500_000;

/**
 * Conversations of the latest turns of this gateway. The next turn of an agent session then reads and decrypts only
 * newer messages.
 */
export class ConversationCache {
  readonly #kept = new Map<string, ModelConversation>();
  #tokens = 0;

  /** Removes and returns the conversation of an agent session. The caller may change the conversation. */
  take(agentSessionId: string): ModelConversation | undefined {
    const conversation = this.#kept.get(agentSessionId);
    this.#kept.delete(agentSessionId);
    this.#tokens -= conversation?.tokens ?? 0;
    return conversation;
  }

  /** Keeps a conversation, and evicts the oldest ones above the limit. */
  keep(agentSessionId: string, conversation: ModelConversation): void {
    this.take(agentSessionId);
    this.#kept.set(agentSessionId, conversation);
    this.#tokens += conversation.tokens;
    for (const oldest of this.#kept.keys()) {
      if (this.#tokens <= maxTokens) return;
      this.take(oldest);
    }
  }
}
