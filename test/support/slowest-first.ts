import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import durations from "../../tools/testing/durations.json" with { type: "json" };

const seconds = new Map(Object.entries(durations));

/** Seconds of a file without a recorded duration, more than any file takes. */
const unknown = 10_000;

/**
 * Sorts files by tier, because files of a tier share processes, and within a tier by their last duration, longest
 * first. A slow file that starts late would leave the other worker idle. Files without a recorded duration come first.
 */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { projects, config } = this.ctx;
    const tiers = projects.map(({ name }) => name);
    const tierOf = ({ project }: TestSpecification): number => tiers.indexOf(project.name);
    const secondsOf = ({ moduleId }: TestSpecification): number =>
      seconds.get(relative(config.root, moduleId)) ?? unknown;
    return files.toSorted((a, b) => tierOf(a) - tierOf(b) || secondsOf(b) - secondsOf(a));
  }
}
