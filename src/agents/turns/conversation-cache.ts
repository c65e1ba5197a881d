import type { ModelConversation } from "./model-conversation.ts";

/** Maximum estimated tokens of all kept conversations, about 1.5 MB of text. */
const maxTokens = 500_000;

/**
 * Caches the conversations of the latest turns of this gateway, so that the next turn of an agent session reads and
 * decrypts only newer messages.
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

  /** Caches a conversation. While all conversations together exceed the limit, evicts the oldest conversation. */
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
