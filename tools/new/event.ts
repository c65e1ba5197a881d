import { camel, pascal, type Tree } from "./tree.ts";

/** Adds an event type such as `note.renamed`. */
export function addEvent(tree: Tree, type: string): void {
  const [, subject = "", change = ""] = /^([a-z_]+)\.([a-z_]+)$/.exec(type) ?? [];
  if (!change) throw new Error(`expected a type such as note.renamed, got ${type}`);
  const proto = `proto/pilothouse/v1/${subject}.proto`;
  if (!tree.has(proto)) throw new Error(`there is no ${proto}: npm run new -- service ${subject}`);
  if (tree.read(proto).includes(`"${type}"`)) throw new Error(`${proto} already has ${type}`);
  const message = `${pascal(subject)}${pascal(change)}Event`;
  tree.write(
    proto,
    `${tree.read(proto)}
// \`data\` of \`${type}\`: TODO: describe when the event occurs.
message ${message} {
  option (event_type) = "${type}";
  option (subscribable) = true;
  // Identifier of the subject.
  string ${subject}_id = 1;
}
`,
  );
  tree.steps.push(
    `${proto}: comments and fields of ${message}; delete \`subscribable\` if webhooks must not receive it`,
    `in the transaction of the change: await events.append(tx, { accountId, subject: id }, ${message}Schema, create(${message}Schema, { ${camel(`${subject}_id`)}: id }));`,
  );
}
