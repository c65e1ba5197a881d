import { scanMembers } from "./member-scan.ts";

export interface ClientCommand {
  readonly id: number;
  readonly method: string;
  readonly sessionId: string | undefined;
  /** JSON of the parameters, or empty. */
  readonly params: string | Buffer;
  parse(): Params;
}

/** Unvalidated parameters of a command. */
export type Params = Readonly<Record<string, unknown>>;

/** A client message that is not a valid command. */
export class BadCommand extends Error {
  /** JSON-RPC error code. */
  readonly code: number;
  readonly id: number | undefined;

  constructor(code: number, message: string, id?: number) {
    super(message);
    this.code = code;
    this.id = id;
  }
}

/**
 * Longest command, in bytes, that is parsed. Longer commands are only scanned: parsing 90 MiB blocks the worker for a
 * second.
 */
const parsedBytes = 64 * 1024;

/** Longest parameters, in bytes, that rules may inspect. */
const longestInspected = 2 ** 20;

/** Reads a client message. Rejects with `BadCommand` if the message is not a valid command. */
export async function readCommand(bytes: Buffer): Promise<ClientCommand> {
  // NUL separates messages on the browser's pipe, so a NUL byte would inject a second command.
  if (bytes.includes(0)) throw new BadCommand(-32700, "the message contains a NUL byte");
  return bytes.length <= parsedBytes ? parsed(bytes) : scanned(bytes);
}

function parsed(bytes: Buffer): ClientCommand {
  const { params, ...members } = objectOf(parseJson(bytes));
  const { id, method, sessionId } = checked(members);
  const known = params === undefined || params === null ? undefined : objectOf(params, id);
  // The parameters are serialized again, because the browser's parser may treat comments and duplicate names
  // differently.
  return { id, method, sessionId, params: known ? JSON.stringify(known) : "", parse: () => known ?? {} };
}

async function scanned(bytes: Buffer): Promise<ClientCommand> {
  const members = await scanMembers(bytes);
  if (!members) throw new BadCommand(-32700, "the message is not JSON");
  const read = (name: string): unknown => {
    const value = members.get(name);
    return value && value.length <= parsedBytes ? parseJson(value) : undefined;
  };
  const { id, method, sessionId } = checked({ id: read("id"), method: read("method"), sessionId: read("sessionId") });
  const params = members.get("params") ?? "";
  const parse = (): Params => {
    if (params.length > longestInspected) throw new BadCommand(-32602, `the parameters of ${method} exceed 1 MiB`, id);
    return params === "" ? {} : objectOf(parseJson(Buffer.from(params)), id);
  };
  return { id, method, sessionId, params, parse };
}

function checked({ id, method, sessionId }: Params): Pick<ClientCommand, "id" | "method" | "sessionId"> {
  if (typeof id !== "number" || !Number.isSafeInteger(id)) throw new BadCommand(-32600, "expected an integer id");
  if (typeof method !== "string") throw new BadCommand(-32600, "expected a method name", id);
  if (sessionId !== undefined && typeof sessionId !== "string")
    throw new BadCommand(-32600, "expected sessionId to be a string", id);
  return { id, method, sessionId: sessionId === "" ? undefined : sessionId };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw new BadCommand(-32700, "the message is not JSON");
  }
}

function objectOf(value: unknown, id?: number): Params {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new BadCommand(id === undefined ? -32600 : -32602, "expected an object", id);
  return value as Params;
}
