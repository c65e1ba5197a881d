import { createGatewayLock } from "../jobs/gateway-lock.ts";
import { createJobRunner } from "../jobs/job-runner.ts";
import type { CreatedFeature } from "../kernel/feature.ts";
import type { Part } from "../platform/lifetime.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { DatabaseTarget } from "../platform/postgres/database-target.ts";
import { createDueTasks } from "../platform/postgres/due-tasks.ts";
import { createRepeatedJob } from "../platform/repeated-job.ts";

/** Creates the parts that run jobs, and adds the features' background parts, repeated jobs and due tasks. */
export function createBackground(
  features: readonly CreatedFeature[],
  platform: PlatformParts,
  target: DatabaseTarget,
): readonly Part[] {
  const kinds = features.flatMap(({ jobKinds = [] }) => jobKinds);
  const gatewayLock = createGatewayLock(target, platform.log);
  const jobRunner = createJobRunner({ ...platform, kinds, gateway: gatewayLock.gateway });
  const jobs = [...features.flatMap(({ jobs = [] }) => jobs), ...jobRunner.jobs];
  const dueTasks = [...features.flatMap(({ dueTasks = [] }) => dueTasks), ...jobRunner.dueTasks];
  return [
    gatewayLock,
    jobRunner,
    ...features.flatMap(({ background = [] }) => background),
    ...jobs.map((job) => createRepeatedJob(job, platform)),
    createDueTasks(dueTasks, platform),
  ];
}
