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

/** Orders files by tier, since files of a tier share processes, and within a tier begins with the slowest. */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await super.sort(files);
    const tiers = this.ctx.projects.map(({ name }) => name);
    const rank = ({ moduleId, project }: TestSpecification): number => {
      const found = slowest.findIndex((name) => moduleId.includes(`/test/${name}.`));
      return tiers.indexOf(project.name) * slowest.length + (found < 0 ? slowest.length : found);
    };
    return usual.toSorted((a, b) => rank(a) - rank(b));
  }
}
