import type { Browser } from "playwright-core";

/** A message of the DevTools protocol: a command, its answer, or an event. */
export interface WireMessage {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  /** The target's session; absent for the browser's own. */
  readonly sessionId?: string;
}

/** What carries messages between Playwright and a browser. */
interface Transport {
  send(message: WireMessage): void;
  onmessage?: (message: WireMessage) => void;
}

/** Ids of our commands begin here: Playwright counts its own from 1, and sends some thousands an hour. */
const FIRST_ID = 2 ** 30;

/** What is done to messages on their way. */
export interface WireFilter {
  /** Gives the command that is sent in place of one of Playwright's. */
  outgoing(command: WireMessage): WireMessage;
  /** Says whether Playwright is told of an event. */
  incoming(event: WireMessage): boolean;
}

/** The wire between Playwright and a browser, and a way to send commands of our own on it, answers unheard. */
export interface BrowserWire {
  send(command: Omit<WireMessage, "id">): void;
}

/**
 * Puts a filter on the wire of a browser. A session of ours beside Playwright's is too late for what has to be in place
 * before the first script of a popup, a frame or a worker: Playwright lets each of them run by itself, in its own time.
 */
export function tapWire(browser: Browser, makeFilter: (wire: BrowserWire) => WireFilter): void {
  const transport = transportOf(browser);
  const { onmessage } = transport;
  if (!onmessage) throw new Error("the browser has gone");
  const send = transport.send.bind(transport);
  let lastId = FIRST_ID;
  const filter = makeFilter({
    send: (command) => {
      lastId += 1;
      send({ ...command, id: lastId });
    },
  });
  transport.send = (message) => send(filter.outgoing(message));
  transport.onmessage = (message) => {
    const isAnswerToUs = message.id !== undefined && message.id >= FIRST_ID;
    if (!isAnswerToUs && (message.id !== undefined || filter.incoming(message))) onmessage(message);
  };
}

/** Playwright has no public name for it: the one place that knows its insides, and a change of them ends every launch. */
function transportOf(browser: Browser): Transport {
  const { _connection: client } = browser as unknown as {
    _connection?: { toImpl?(object: Browser): { _connection?: { _transport?: Transport } } };
  };
  const transport = client?.toImpl?.(browser)._connection?._transport;
  if (!transport) throw new Error("this version of Playwright hides its wire to the browser elsewhere");
  return transport;
}
