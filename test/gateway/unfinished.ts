import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Protocol of an unfinished request. */
export type UnfinishedTransport = "HTTP/1.1" | "HTTP/2" | "gRPC";

// Fits into the initial flow-control window of a stream.
const bodyBytes = Buffer.alloc(48 * 1024, 0x20);
const length = 1_000_000;

/** Returns a request without a key that announces a body of 1 MB and sends its first 48 KiB. */
function unfinishedRequest(transport: UnfinishedTransport): Buffer {
  switch (transport) {
    case "HTTP/1.1": {
      const head = `POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
      return Buffer.concat([Buffer.from(head), bodyBytes]);
    }
    case "HTTP/2":
      return http2Request("application/json", "/pilothouse.v1.SessionService/Create", bodyBytes);
    case "gRPC": {
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(length, 1);
      return http2Request(
        "application/grpc",
        "/pilothouse.v1.SessionService/Create",
        Buffer.concat([prefix, bodyBytes]),
      );
    }
  }
}

/** Returns preface, settings, headers and part of a body (RFC 9113). Header fields are literal (RFC 7541, 6.2.2). */
function http2Request(contentType: string, path: string, body: Buffer): Buffer {
  const fields = {
    ":method": "POST",
    ":scheme": "http",
    ":authority": "localhost",
    ":path": path,
    "content-type": contentType,
    te: "trailers",
  };
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  const block = Object.entries(fields).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]);
  const chunks = Array.from({ length: Math.ceil(body.length / 16_384) }, (_, index) =>
    frame(0, 0, 1, body.subarray(index * 16_384, (index + 1) * 16_384)),
  );
  const endHeaders = 4;
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    frame(4, 0, 0, Buffer.alloc(0)),
    frame(1, endHeaders, 1, Buffer.concat(block)),
    ...chunks,
  ]);
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Connections with one unfinished request each. */
export interface Unfinished {
  readonly sockets: readonly Socket[];
  /** Returns the number of connections that the service has not closed. */
  open(): number;
  close(): void;
}

/** Opens `count` connections, from loopback addresses `127.0.<subnet>.1` to `.200` in turn. */
export async function leaveUnfinished(
  transport: UnfinishedTransport,
  address: string,
  { count, subnet }: { count: number; subnet: number },
): Promise<Unfinished> {
  const { hostname: host, port } = new URL(`tcp://${address}`);
  const request = unfinishedRequest(transport);
  let open = 0;
  const sockets: Socket[] = [];
  const openOne = async (index: number): Promise<void> => {
    const socket = connect({ host, port: Number(port), localAddress: `127.0.${subnet}.${1 + (index % 200)}` });
    sockets.push(socket);
    open += 1;
    socket.on("close", () => {
      open -= 1;
    });
    socket.on("error", () => undefined).resume();
    await once(socket, "connect");
    socket.write(request);
  };
  for (let index = 0; index < count; index += 100) {
    await Promise.all(Array.from({ length: Math.min(100, count - index) }, (_, more) => openOne(index + more)));
  }
  return {
    sockets,
    open: () => open,
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}
