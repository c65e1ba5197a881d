import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take a minute or more: begun late, one of them would keep the suite waiting while other workers idle. */
const slowest = [
  "e2e/hostile",
  "start/start",
  "tools/admin",
  "chaos/gateway",
  "e2e/bad-input",
  "isolation/ways-out",
  "e2e/scaled",
];

/** Begins with the slowest files, and goes on in the usual order. */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = slowest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return found < 0 ? slowest.length : found;
    };
    return usual.toSorted((a, b) => rank(a) - rank(b));
  }
}
