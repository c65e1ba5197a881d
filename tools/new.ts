// Writes stubs into the checkout. Prints the changed files to standard output, and the next steps to standard error.
import { addEndpoint } from "./new/endpoint.ts";
import { addEvent } from "./new/event.ts";
import { addService } from "./new/service.ts";
import { Tree } from "./new/tree.ts";

const usage = `usage: npm run new -- endpoint NoteService.Rename POST "/v1/notes/{id}/rename"
       npm run new -- service note
       npm run new -- event note.renamed`;

const tree = new Tree();
try {
  const [kind, name, verb, path] = process.argv.slice(2);
  if (kind === "endpoint" && name && verb && path) addEndpoint(tree, { name, verb, path });
  else if (kind === "service" && name) addService(tree, name);
  else if (kind === "event" && name) addEvent(tree, name);
  else throw new Error(usage);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
for (const step of tree.steps) console.error(`next: ${step}`);
console.log(tree.save().join("\n"));
