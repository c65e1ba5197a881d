import { type Case, chunk, http1, latin1 } from "./bytes.ts";
import { type CaseClass, type Facts, listed, oddHosts, oddPaths } from "./http1-cases.ts";

const hex = (bytes: string | Buffer): string => `x${Buffer.from(bytes as string, "latin1").toString("hex")}x`;

/** Responses of a site or a proxy. */
const answers: Readonly<Record<string, string>> = {
  "a page": "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
  nothing: "",
  "one byte": "H",
  "no HTTP": "\x05\xff\0\x01",
  "odd status": "HTTP/1.1 99 X\r\n\r\n",
  "status 0": "HTTP/1.1 000 \r\n\r\n",
  "status 1000": "HTTP/1.1 1000 X\r\n\r\n",
  "status of letters": "HTTP/1.1 abc X\r\n\r\n",
  "odd reason": "HTTP/1.1 200 \xff\x01\x7f\r\n\r\n",
  switching: "HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc",
  "many early hints": "HTTP/1.1 103 X\r\n\r\n".repeat(5),
  "continue alone": "HTTP/1.1 100 Continue\r\n\r\n",
  "login wanted": "HTTP/1.1 407 X\r\nproxy-authenticate: \xff\r\n\r\n",
  "no content, with content": "HTTP/1.1 204 X\r\ncontent-length: 5\r\n\r\nabcde",
  "negative length": "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
  "two lengths": "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
  "broken chunks": "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZ\r\n",
  trailers: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n0\r\nx: \xff\0\r\n\r\n",
  "odd headers":
    "HTTP/1.1 200 OK\r\nx: a\0b\r\n: y\r\nset-cookie: \xff\r\nkeep-alive: timeout=-1\r\n__proto__: x\r\n\r\n",
  "chunked as HTTP/1.0": "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n",
  "two answers": "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
  "tunnel open": "HTTP/1.1 200 X\r\n\r\n",
  "tunnel with content": "HTTP/1.1 200 X\r\ncontent-length: 3\r\n\r\nabc",
  "socks refused": "\x05\x05\0\x01\0\0\0\0\0\0",
  "socks open": "\x05\0\0\x01\0\0\0\0\0\0rest",
  "socks of an odd address": "\x05\0\0\x09\0\0",
  "socks cut": "\x05\0",
  "socks 4": "\0\x5a\0\0\0\0\0\0",
};

const targets = [
  ...listed(`
    : | :80 | localhost | localhost:0 | localhost:65536 | localhost:080 | localhost:-1 | [::1]:80 | [::1:80 | 1.2.3.4:80:80
    a b:80 | \xff:80 | %:80 | user@host:80 | http://localhost:80 | / | * | 0:1 | 0x7f.1:80 | 169.254.169.254:80
    [::ffff:127.0.0.1]:22 | xn--:80 | a..b:80 | .:80 | localhost.:80 | \0:80 | 127.0.0.1:22`),
  "",
  "a".repeat(256),
  `${"a".repeat(300)}:80`,
];

function relayCases({ site }: Facts): Case[] {
  const get = (url: string, ...more: readonly string[]): Buffer =>
    http1(`GET ${url} HTTP/1.1`, [`Host: ${site}`, ...more]);
  const tunnel = (target: string): Buffer => http1(`CONNECT ${target} HTTP/1.1`, [`Host: ${target}`]);
  const leaves = ["wait", "reset"] as const;
  const tunnels = targets.map((target) => ({
    name: `CONNECT ${target}`,
    steps: [tunnel(target), 2],
    leave: "wait" as const,
  }));
  const urls = [
    ...oddPaths,
    ...oddHosts.map((host) => `http://${host}/`),
    ...targets.map((target) => `http://${target}/`),
  ].map((url) => ({
    name: `a proxy's GET ${url}`,
    steps: [get(url)],
    leave: "wait" as const,
  }));
  const answered = Object.entries(answers).flatMap(([name, answer]) =>
    leaves.flatMap((leave) => [
      { name: `a site that answers ${name}`, steps: [get(`http://${site}/${hex(answer)}`), 5], leave },
      {
        name: `a HEAD that is answered ${name}`,
        steps: [http1(`HEAD http://${site}/${hex(answer)} HTTP/1.1`, []), 5],
        leave,
      },
      { name: `a proxy that answers ${name}`, steps: [get(`http://${hex(answer)}.example/`), 5], leave },
      {
        name: `a tunnel through a proxy that answers ${name}`,
        steps: [tunnel(`${hex(answer)}.example:443`), latin1("early"), 5, latin1("late")],
        leave,
      },
      {
        name: `a tunnel to a site that answers ${name}`,
        steps: [tunnel(site), latin1("GET /"), 3, latin1(hex(answer)), 3],
        leave,
      },
    ]),
  );
  const page = `http://${site}/${hex(answers["a page"] ?? "")}`;
  const bodies = ["GET", "POST", "DELETE", "TRACE", "OPTIONS", "M-SEARCH"].flatMap((method) => [
    {
      name: `${method} with a body cut off`,
      steps: [http1(`${method} ${page} HTTP/1.1`, ["Transfer-Encoding: chunked"]), chunk(latin1("abc")), 3],
      leave: "reset" as const,
    },
    {
      name: `${method} with a broken chunk`,
      steps: [http1(`${method} ${page} HTTP/1.1`, ["Transfer-Encoding: chunked"]), 2, latin1("Z\r\n")],
      leave: "wait" as const,
    },
    {
      name: `${method} with odd headers`,
      steps: [http1(`${method} ${page} HTTP/1.1`, ["X: \xff\x01", "Connection: host, \xff", "Expect: x", "TE: \xff"])],
      leave: "wait" as const,
    },
    {
      name: `${method}, then a tunnel`,
      steps: [http1(`${method} ${page} HTTP/1.1`, []), tunnel(site), get(page), 3],
      leave: "end" as const,
    },
  ]);
  const upgraded = {
    name: "an upgrade through a proxy",
    steps: [get(page, "Connection: Upgrade", "Upgrade: websocket"), 3, latin1("abc")],
    leave: "wait" as const,
  };
  const behind = {
    name: "an upgrade behind a proxy's GET",
    steps: [get(page), get(page, "Connection: Upgrade", "Upgrade: websocket"), tunnel(site)],
    leave: "reset" as const,
  };
  return [...tunnels, ...urls, ...answered, ...bodies, upgraded, behind];
}

/** Offsets of length fields in a ClientHello. */
const helloFields = [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 43, 44, 76, 77, 78, 79];

function tlsCases({ clientHello }: Facts): Case[] {
  const record = (type: number, body: string, length = body.length): Buffer =>
    Buffer.concat([Buffer.from([type, 3, 3, length >> 8, length & 255]), latin1(body)]);
  const changed = helloFields.flatMap((at) =>
    [0, 0xff].map((value) => {
      const hello = Buffer.from(clientHello);
      hello[at] = value;
      return { name: `ClientHello with ${value} at ${at}`, steps: [hello], leave: "wait" as const };
    }),
  );
  const cut = [1, 5, 6, 9, 50, clientHello.length - 1].map((length) => ({
    name: `ClientHello cut at ${length}`,
    steps: [clientHello.subarray(0, length), 5],
    leave: "reset" as const,
  }));
  const others: Record<string, readonly Buffer[]> = {
    "ClientHello twice": [clientHello, clientHello],
    "ClientHello, then data": [clientHello, record(23, "abc")],
    "ClientHello, then a handshake of zero": [clientHello, record(22, "\0\0\0\0")],
    "ClientHello, then an alert": [clientHello, record(21, "\x02\x28")],
    "ClientHello, then HTTP": [clientHello, http1("GET / HTTP/1.1", ["Host: localhost"])],
    "close alert": [record(21, "\x01\0")],
    "change of cipher alone": [record(20, "\x01")],
    heartbeat: [record(24, "\x01\xff\xff", 3)],
    "empty record": [record(22, "")],
    "record of 65,535": [record(22, "\x01", 65_535)],
    "unknown record": [record(99, "abc")],
    "SSL 2": [latin1("\x80\x2e\x01\0\x02\0\x15\0\0\0\x10")],
    "PROXY protocol": [latin1("PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n")],
    SSH: [latin1("SSH-2.0-x\r\n")],
  };
  return [
    ...changed,
    ...cut,
    ...Object.entries(others).map(([name, steps]) => ({ name, steps, leave: "wait" as const })),
  ];
}

/** Classes of cases for relays and for broken TLS. */
export const otherClasses: Readonly<Record<string, CaseClass>> = {
  "requests to a relay": (_random, facts) => relayCases(facts),
  "broken TLS": (_random, facts) => tlsCases(facts),
};
