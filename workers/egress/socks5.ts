import { isIPv4, isIPv6, type Socket } from "node:net";
import { formatTarget, type HostPort, ipv6Groups } from "../../src/platform/outgoing/address-rules.ts";
import { connectionClosed, loginRefused, ProxyFailure, tunnelRefused } from "./proxy-failure.ts";

export interface ProxyLogin {
  readonly username: string;
  readonly password: string;
}

const socksVersion = 5;
const methodCodes = { none: 0, login: 2, refused: 255 } as const;
const connect = 1;
const address = { ipv4: 1, name: 3, ipv6: 4 } as const;

/** Failure replies (RFC 1928, section 6). */
const replies: Readonly<Record<number, string>> = {
  1: "general failure",
  2: "not allowed",
  3: "network unreachable",
  4: "host unreachable",
  5: "connection refused",
  6: "time to live expired",
  7: "command not supported",
  8: "address type not supported",
};

/**
 * Requests a tunnel from a SOCKS5 proxy (RFC 1928, login by RFC 1929). Names are sent unresolved. The package `socks`
 * is not used, because it distinguishes a refused login from a refused target only by error text.
 */
export async function openSocks5Tunnel(socket: Socket, target: HostPort, login: ProxyLogin | undefined): Promise<void> {
  const methods = login ? [methodCodes.none, methodCodes.login] : [methodCodes.none];
  socket.write(Buffer.from([socksVersion, methods.length, ...methods]));
  const [version, method] = await read(socket, 2);
  if (version !== socksVersion) throw new ProxyFailure("unreachable", "does not speak SOCKS5");
  if (method === methodCodes.login && login) await logIn(socket, login);
  else if (method !== methodCodes.none) throw loginRefused();
  socket.write(Buffer.concat([Buffer.from([socksVersion, connect, 0]), encodeTarget(target)]));
  const [, reply = 1, , family] = await read(socket, 4);
  if (reply !== 0) throw tunnelRefused(formatTarget(target), replies[reply] ?? `reply ${reply}`);
  await read(socket, (await boundLength(socket, family)) + 2);
}

async function logIn(socket: Socket, { username, password }: ProxyLogin): Promise<void> {
  const fields = [username, password].map((field) => Buffer.from(field));
  socket.write(Buffer.concat([Buffer.from([1]), ...fields.flatMap((field) => [Buffer.from([field.length]), field])]));
  const [, status] = await read(socket, 2);
  if (status !== 0) throw loginRefused();
}

function encodeTarget({ host, port }: HostPort): Buffer {
  const encodedPort = Buffer.from([port >> 8, port & 255]);
  if (isIPv4(host)) return Buffer.concat([Buffer.from([address.ipv4, ...host.split(".").map(Number)]), encodedPort]);
  if (isIPv6(host)) {
    const bytes = ipv6Groups(host).flatMap((group) => [group >> 8, group & 255]);
    return Buffer.concat([Buffer.from([address.ipv6, ...bytes]), encodedPort]);
  }
  const name = Buffer.from(host);
  if (name.length > 255) throw tunnelRefused(formatTarget({ host, port }), "a name longer than 255 bytes");
  return Buffer.concat([Buffer.from([address.name, name.length]), name, encodedPort]);
}

/** Returns the length of the bound address that follows in the reply. The address itself is discarded. */
async function boundLength(socket: Socket, family: number | undefined): Promise<number> {
  if (family === address.ipv4) return 4;
  if (family === address.ipv6) return 16;
  if (family === address.name) return (await read(socket, 1))[0] ?? 0;
  throw new ProxyFailure("unreachable", "does not speak SOCKS5");
}

/** Reads exactly `length` bytes and leaves the rest in the socket. */
function read(socket: Socket, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      socket.off("readable", onReadable);
      for (const event of ["error", "end", "close"]) socket.off(event, giveUp);
    };
    const onReadable = () => {
      const bytes: unknown = socket.read(length);
      if (!(bytes instanceof Buffer)) return;
      settle();
      // At its end, a stream returns fewer bytes than requested.
      if (bytes.length === length) resolve(bytes);
      else reject(connectionClosed(undefined));
    };
    const giveUp = (error?: unknown) => {
      settle();
      reject(connectionClosed(error));
    };
    socket.on("readable", onReadable);
    for (const event of ["error", "end", "close"]) socket.once(event, giveUp);
    if (socket.destroyed) giveUp();
    else onReadable();
  });
}
