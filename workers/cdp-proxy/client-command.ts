import { scanMembers } from "./member-scan.ts";

/** A command as a client has sent it. */
export interface ClientCommand {
  readonly id: number;
  readonly method: string;
  readonly sessionId: string | undefined;
  /** The JSON of its parameters; empty when it has none. */
  readonly params: string | Buffer;
  /** Its parameters, for who has to look into them. */
  parse(): Params;
}

/** Parameters of a command, none of which was checked. */
export type Params = Readonly<Record<string, unknown>>;

/** What a client has sent that is no command. */
export class BadCommand extends Error {
  /** As JSON-RPC has them. */
  readonly code: number;
  /** The id, where it has a good one. */
  readonly id: number | undefined;

  constructor(code: number, message: string, id?: number) {
    super(message);
    this.code = code;
    this.id = id;
  }
}

/** Up to here a command is parsed; of a longer one only its outside is read: parsing 90 MiB holds the worker for a second. */
const parsedBytes = 64 * 1024;

/** Parameters that are looked into are never long. */
const longestInspected = 2 ** 20;

/** Reads what a client has sent; throws a `BadCommand`. */
export async function readCommand(bytes: Buffer): Promise<ClientCommand> {
  // It would end the command on the browser's pipe, and begin another one.
  if (bytes.includes(0)) throw new BadCommand(-32700, "the message has a NUL byte");
  return bytes.length <= parsedBytes ? parsed(bytes) : scanned(bytes);
}

function parsed(bytes: Buffer): ClientCommand {
  const { params, ...members } = objectOf(parseJson(bytes));
  const { id, method, sessionId } = checked(members);
  const known = params === undefined || params === null ? undefined : objectOf(params, id);
  // Written anew: what the browser reads is what was looked at, whatever its reader makes of comments and doubled names.
  return { id, method, sessionId, params: known ? JSON.stringify(known) : "", parse: () => known ?? {} };
}

async function scanned(bytes: Buffer): Promise<ClientCommand> {
  const members = await scanMembers(bytes);
  if (!members) throw new BadCommand(-32700, "the message is no JSON");
  const read = (name: string): unknown => {
    const value = members.get(name);
    return value && value.length <= parsedBytes ? parseJson(value) : undefined;
  };
  const { id, method, sessionId } = checked({ id: read("id"), method: read("method"), sessionId: read("sessionId") });
  const params = members.get("params") ?? "";
  const parse = (): Params => {
    if (params.length > longestInspected) throw new BadCommand(-32602, `${method} is too long`, id);
    return params === "" ? {} : objectOf(parseJson(Buffer.from(params)), id);
  };
  return { id, method, sessionId, params, parse };
}

function checked({ id, method, sessionId }: Params): Pick<ClientCommand, "id" | "method" | "sessionId"> {
  if (typeof id !== "number" || !Number.isSafeInteger(id)) throw new BadCommand(-32600, "a command has an integer id");
  if (typeof method !== "string") throw new BadCommand(-32600, "a command has a method", id);
  if (sessionId !== undefined && typeof sessionId !== "string")
    throw new BadCommand(-32600, "a sessionId is a string", id);
  return { id, method, sessionId: sessionId === "" ? undefined : sessionId };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw new BadCommand(-32700, "the message is no JSON");
  }
}

function objectOf(value: unknown, id?: number): Params {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new BadCommand(id === undefined ? -32600 : -32602, "an object is expected", id);
  return value as Params;
}
