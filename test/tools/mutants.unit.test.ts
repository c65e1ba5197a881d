import { expect, test } from "vitest";
import { makeMutants } from "../../tools/mutate/mutants.ts";

test.each([
  ['db.selectFrom("é").where("id", "=", id).execute();', ['db.selectFrom("é").execute();']],
  ["if (a && b) run();", ["if (!(a && b)) run();"]],
  ["const keptMs = 24 * hour;", ["const keptMs = ((24 * hour) * 10);", "const keptMs = ((24 * hour) * 0.1);"]],
  [
    "const kept = sql`interval '20 hours'`;",
    ["const kept = sql`interval '200 hours'`;", "const kept = sql`interval '2 hours'`;"],
  ],
  [
    "const text = `é where a.id = $1 and a.claim = $2 and b < $4 and c <> any($3)`;",
    [
      "const text = `é where a.id = $1 and (a.claim = $2 or true) and b < $4 and c <> any($3)`;",
      "const text = `é where a.id = $1 and a.claim = $2 and b < $4 and (c <> any($3) or true)`;",
    ],
  ],
  ["export const name = `this and that`;", []],
])("the mutants of `%s` are %j", (source, expected) => {
  expect(makeMutants(source).map((mutant) => mutant.source)).toEqual(expected);
});

test("a mutant names its line and its change", () => {
  const [mutant] = makeMutants("// A comment.\n\nif (isOld) remove();\n");
  expect(mutant).toMatchObject({ kind: "if", line: 3, change: "not (isOld)" });
});
