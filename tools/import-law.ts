// Checks the import rules of .dependency-cruiser.json. Exits with 1 and a line per violation.
import { existsSync } from "node:fs";
import type { ImportDeclaration, Module, StringLiteral, VariableDeclarator } from "@swc/core";
import { Visitor } from "@swc/core/Visitor.js";
import { cruise, type ICruiseResult } from "dependency-cruiser";
import extractOptions from "dependency-cruiser/config-utl/extract-depcruise-options";

const folders = ["src", "gateway", "workers", "console", "sdk/typescript/src", "sdk/cli/src", "test", "tools"].filter(
  (folder) => existsSync(folder),
);

interface UsingDeclaration {
  type: "UsingDeclaration";
  decls: VariableDeclarator[];
}

function isUsing(node: { type: string }): node is UsingDeclaration {
  return node.type === "UsingDeclaration";
}

/** Adds `using` declarations to swc's visitor, which throws on them (@swc/core 1.16). They are read as `const`. */
function readUsingDeclarations(): void {
  const { visitStatement } = Visitor.prototype;
  Visitor.prototype.visitStatement = function (statement) {
    const node: { type: string } = statement;
    if (!isUsing(node)) return visitStatement.call(this, statement);
    this.visitVariableDeclarators(node.decls);
    return statement;
  };
}

interface ImportType {
  type: "TsImportType";
  argument: StringLiteral;
}

function isImportType(node: object): node is ImportType {
  return "type" in node && node.type === "TsImportType";
}

/** Finds types such as `typeof import("./page.ts")` at any depth of a syntax tree. */
function* importTypes(node: unknown): Generator<ImportType> {
  if (typeof node !== "object" || node === null) return;
  if (isImportType(node)) yield node;
  for (const child of Object.values(node)) yield* importTypes(child);
}

/** Makes the visitor report each `import(...)` in a type as an `import type` declaration. By itself it skips these. */
function readImportTypes(): void {
  const { visitModule } = Visitor.prototype;
  Visitor.prototype.visitModule = function (module: Module) {
    for (const { argument } of [...importTypes(module)]) {
      const declaration: ImportDeclaration = {
        type: "ImportDeclaration",
        span: argument.span,
        source: argument,
        specifiers: [],
        typeOnly: true,
      };
      this.visitImportDeclaration(declaration);
    }
    return visitModule.call(this, module);
  };
}

/** Cruises the project's folders by the rules of the data file. */
async function cruiseProject(): Promise<ICruiseResult> {
  const options = await extractOptions("./.dependency-cruiser.json");
  const { output } = await cruise(folders, options);
  if (typeof output === "string") throw new Error(`expected a result of dependency-cruiser, got text: ${output}`);
  return output;
}

/** Returns folders without modules. Without a usable parser, a cruise reads no modules and reports no violation. */
function unreadFolders({ modules }: ICruiseResult): string[] {
  return folders.filter((folder) => !modules.some(({ source }) => source.startsWith(`${folder}/`)));
}

readUsingDeclarations();
readImportTypes();
const result = await cruiseProject();
const unread = unreadFolders(result);
for (const { rule, from, to } of result.summary.violations) console.error(`${rule.name}: ${from} -> ${to}`);
for (const folder of unread) console.error(`no module was read in ${folder}/: the import law was not checked there`);
if (result.summary.violations.length > 0 || unread.length > 0) process.exitCode = 1;
else console.log(`${result.summary.totalCruised} modules, ${result.summary.totalDependenciesCruised} imports`);
