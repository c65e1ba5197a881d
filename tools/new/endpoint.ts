import { dirname, relative } from "node:path";
import { camel, type Tree } from "./tree.ts";

/** An endpoint to add: `NoteService.Rename`, its HTTP verb and its path. */
export interface NewEndpoint {
  readonly name: string;
  readonly verb: string;
  readonly path: string;
}

/** Adds an rpc with its messages, its implementation, and its lines in the tests of all endpoints. */
export function addEndpoint(tree: Tree, { name, verb, path }: NewEndpoint): void {
  const [, service, subject, method] = /^((\w+)Service)\.([A-Z]\w*)$/.exec(name) ?? [];
  if (!service || !subject || !method) throw new Error(`expected NoteService.Rename, got ${name}`);
  if (!/^(GET|POST|PUT|PATCH|DELETE)$/.test(verb))
    throw new Error(`expected GET, POST, PUT, PATCH or DELETE, got ${verb}`);
  if (!/^\/v1\/[\w/{}-]+$/.test(path)) throw new Error(`expected a path such as /v1/notes/{id}/rename, got ${path}`);
  const [proto] = tree.find("proto/pilothouse/v1/*.proto", new RegExp(`^service ${service} \\{`, "m"));
  if (!proto)
    throw new Error(`no proto file has the service ${service}: npm run new -- service ${subject.toLowerCase()}`);
  if (tree.read(proto).includes(`  rpc ${method}(`)) throw new Error(`${proto} already has ${name}`);

  const isWrite = verb !== "GET";
  const scope = `${resourceOf(tree.read(proto))}:${isWrite ? "write" : "read"}`;
  const action = isWrite ? `${snake(subject)}.${snake(method)}` : undefined;
  const fields = [...path.matchAll(/\{(\w+)\}/g)].map(([, field = ""]) => field);
  const messages = { request: `${method}${subject}Request`, response: `${method}${subject}Response` };
  addRpc(tree, proto, service, rpcText({ method, verb, path, scope, action, ...messages }));
  tree.write(proto, `${tree.read(proto)}\n${messageText(messages, fields)}`);

  addMethod(tree, { service, method: camel(method), proto, response: messages.response, fields, isWrite });
  const rows = "test/gateway/walk/rows.ts";
  const last = [...tree.read(rows).matchAll(new RegExp(`^  "${service}\\..*\\n`, "gm"))].at(-1);
  const row = `  "${name}": ["${scope}"],\n`;
  if (last) tree.write(rows, tree.read(rows).replace(last[0], last[0] + row));
  else tree.insertBefore(rows, "\n};\n", `\n${row.trimEnd()}`);
  if (action) {
    const request = fields.map((field) => `${field}: "first"`).join(", ");
    const write = `"${name}": byKey("${action}", async () => ({ ${request} })),`;
    tree.insertBefore("test/gateway/walk/writes.ts", "\n};\n", `\n  ${write}`);
  }
  tree.insertBefore("test/contract/endpoints.json", "\n  ]\n}", `,\n    "${verb} ${path}"`);
  tree.steps.push(
    `${proto}: comments (they are the reference), fields, scope and errors of ${method}`,
    `${rows}: what ${name} requires of callers`,
    "npm run check -- types proto_lint; npm run accept-contract; npm test -- test/contract test/gateway",
  );
}

/** Returns the resource of the first scope in a proto file. */
const resourceOf = (proto: string): string => /scope: "(\w+):/.exec(proto)?.[1] ?? "account";

const snake = (words: string): string => words.replaceAll(/(?<=.)[A-Z]/g, "_$&").toLowerCase();

interface NewRpc extends Record<"method" | "verb" | "path" | "scope" | "request" | "response", string> {
  /** Action of the audit log, for a method that changes something. */
  readonly action: string | undefined;
}

function rpcText({ method, verb, path, scope, action, request, response }: NewRpc): string {
  const route = `${verb.toLowerCase()}: "${path}"`;
  const hasBody = !/GET|DELETE/.test(verb);
  const errors = [...(path.includes("{") ? ["not-found"] : []), ...(verb === "POST" ? ["conflict"] : [])];
  const lines = [
    ...(action ? [] : ["option idempotency_level = NO_SIDE_EFFECTS;"]),
    ...(hasBody ? ["option (google.api.http) = {", `  ${route}`, `  body: "*"`, "};"] : []),
    ...(hasBody ? [] : [`option (google.api.http) = {${route}};`]),
    "option (rules) = {",
    `  scope: "${scope}"`,
    ...(action ? [`  audit: "${action}"`] : []),
    ...(errors.length > 0 ? [`  errors: [${errors.map((error) => `\n        "${error}"`).join(",")}\n      ]`] : []),
    "};",
  ];
  return `
  // TODO: describe what ${method} does, starting with a verb in the third person.
  rpc ${method}(${request}) returns (${response}) {
    ${lines.join("\n    ")}
  }`;
}

function messageText({ request, response }: Record<"request" | "response", string>, fields: readonly string[]): string {
  const text = (name: string, constraint: string): string =>
    fields.map((field, at) => `  // Identifier.\n  string ${field} = ${at + 1}${constraint};\n`).join("") ||
    `  // ${name}\n`;
  return `// TODO: describe the request.
message ${request} {
${text("No fields yet.", " [(buf.validate.field).string.max_len = 64]")}}

// TODO: describe the response.
message ${response} {
${text("No fields yet.", "")}}
`;
}

/** Inserts an rpc at the end of its service. */
function addRpc(tree: Tree, proto: string, service: string, rpc: string): void {
  const text = tree.read(proto);
  const end = text.indexOf("\n}\n", text.indexOf(`service ${service} {`));
  tree.write(proto, text.slice(0, end) + separated(text.slice(0, end), rpc) + text.slice(end));
}

/** Returns a member with an empty line before it, unless it is the first of its block. */
const separated = (before: string, member: string): string => (before.endsWith("{") ? member : `\n${member}`);

interface NewMethod {
  readonly service: string;
  readonly method: string;
  readonly proto: string;
  readonly response: string;
  readonly fields: readonly string[];
  readonly isWrite: boolean;
}

function methodText({ method, response, fields, isWrite }: NewMethod): string {
  const names = fields.map(camel).join(", ");
  const request = names && `, { ${names} }`;
  const answer = `create(${response}Schema, { ${names} })`;
  if (!isWrite) return `\n    ${method}: async (_call${request}) => ${answer},`;
  return `
    ${method}: (call${request}) =>
      call.commit(async (tx) => {
        call.audit(tx, { subject: ${fields[0] ? camel(fields[0]) : "call.principal.accountId"} });
        return ${answer};
      }),`;
}

/** Adds a stub that returns the identifiers of the request. */
function addMethod(tree: Tree, added: NewMethod): void {
  const { service, method, proto, response } = added;
  const stub = methodText(added);
  const [file] = tree.find("src/**/*.ts", new RegExp(`\\): ServiceImplementation<typeof ${service}>`));
  const text = file === undefined ? "" : tree.read(file);
  const end = text.indexOf("\n  };\n}\n", text.indexOf(`ServiceImplementation<typeof ${service}>`));
  if (file === undefined || end < 0) {
    tree.steps.push(`the implementation of ${service}:${stub}`);
    return;
  }
  const generated = proto.replace(/^proto\//, "src/gen/").replace(/\.proto$/, "_pb.ts");
  const isImported = /import \{.*\bcreate\b.*\} from "@bufbuild\/protobuf";/.test(text);
  const imports = `import { ${response}Schema } from "${relative(dirname(file), generated)}";
${isImported ? "" : 'import { create } from "@bufbuild/protobuf";\n'}`;
  tree.write(file, imports + text.slice(0, end) + separated(text.slice(0, end), stub) + text.slice(end));
  tree.steps.unshift(`${file}: the implementation of ${method}`);
}
