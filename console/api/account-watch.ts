import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { useTransport } from "@connectrpc/connect-query";
import { type Query, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { AccountResource, AccountService } from "../../src/gen/pilothouse/v1/account_pb.ts";
import { keepOpen, pause, useIsVisible } from "./stream.ts";

/** Milliseconds in which several notices cause one read. */
const gatherMs = 250;

/** Names of services whose queries show a resource. The services themselves are loaded by the pages that use them. */
const readers: Readonly<Record<AccountResource, readonly string[]>> = {
  [AccountResource.UNSPECIFIED]: [],
  [AccountResource.SESSION]: ["SessionService"],
  // The service also reports new entries of the transcript with this resource.
  [AccountResource.AGENT_SESSION]: ["AgentSessionService", "AgentTurnService"],
  [AccountResource.TURN]: ["AgentSessionService", "AgentTurnService"],
  [AccountResource.WEBHOOK]: ["WebhookService"],
  [AccountResource.DELIVERY]: ["WebhookService"],
  [AccountResource.API_KEY]: ["ApiKeyService"],
  [AccountResource.MEMBER]: ["TeamService"],
  [AccountResource.INVITE]: ["TeamService"],
  [AccountResource.PROFILE]: ["ProfileService"],
  [AccountResource.RECIPE]: ["RecipeService"],
  [AccountResource.USAGE]: ["AccountService"],
};

/** Returns the name of a query's service, without its package. */
function serviceOf({ queryKey }: Query): string | undefined {
  const [, key] = queryKey as readonly [unknown, { readonly serviceName?: string }?];
  return key?.serviceName?.split(".").at(-1);
}

/**
 * Follows the changes of an account while the page is visible, and refetches the queries that show them. One tab opens
 * the stream, because browsers open at most six HTTP/1.1 connections to a host. It forwards its notices to the other
 * tabs.
 */
export function useAccountWatch(accountId: string | undefined): void {
  const transport = useTransport();
  const client = useQueryClient();
  const isVisible = useIsVisible();
  useEffect(() => {
    if (!isVisible || accountId === undefined) return;
    const stopped = new AbortController();
    const { signal } = stopped;
    const changed = new Set<string>();
    // A tab that was hidden has missed notices, so all queries are read first.
    let mustReadAll = true;
    let isReading = false;
    // Reads do not overlap, because each read of a query cancels the one before.
    const read = async (): Promise<void> => {
      if (isReading) return;
      isReading = true;
      while (!signal.aborted && (mustReadAll || changed.size > 0)) {
        await pause(gatherMs, signal);
        const [isAll, names] = [mustReadAll, new Set(changed)];
        mustReadAll = false;
        changed.clear();
        // The error of a query, such as that of an ended session, stays until the next resync.
        const isConcerned = (query: Query): boolean =>
          isAll || (query.state.status !== "error" && names.has(serviceOf(query) ?? ""));
        await client.invalidateQueries({ predicate: isConcerned });
      }
      isReading = false;
    };
    const receive = (resource: AccountResource): void => {
      if (resource === AccountResource.UNSPECIFIED) mustReadAll = true;
      for (const name of readers[resource] ?? []) changed.add(name);
      void read();
    };
    const run = (): Promise<void> =>
      keepOpen(signal, async (onReceived) => {
        const { watch } = AccountService.method;
        const { message } = await transport.stream(watch, signal, undefined, undefined, createAsyncIterable([{}]));
        for await (const notice of message) {
          if (signal.aborted) return;
          onReceived();
          const { resource = AccountResource.UNSPECIFIED } = notice;
          receive(resource);
          channel.postMessage(resource);
        }
      });
    const name = `account-watch:${accountId}`;
    const channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }: MessageEvent<AccountResource>) => receive(data);
    void read();
    // Browsers have no locks on plain http, except on loopback names.
    if (isSecureContext) navigator.locks.request(name, { signal }, run).catch(() => undefined);
    else void run();
    return () => {
      stopped.abort();
      channel.close();
    };
  }, [accountId, isVisible, transport, client]);
}
