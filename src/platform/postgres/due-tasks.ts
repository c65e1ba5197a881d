import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Part } from "../lifetime.ts";
import { createRepeatedJob, type RepeatedJobParts, type RepeatedTask } from "../repeated-job.ts";
import type { Database } from "./database.ts";

/** Repeated task that runs only while a condition in SQL holds. */
export interface DueTask extends Omit<RepeatedTask, "every"> {
  isDue(): RawBuilder<SqlBool>;
}

/** Milliseconds between checks of the conditions. */
const checkEvery = 1_000;

/** Returns the due tasks. Checks all conditions with one statement. */
export async function findDueTasks(db: Database, tasks: readonly DueTask[]): Promise<DueTask[]> {
  const conditions = sql.join(tasks.map((task) => task.isDue()));
  const { rows } = await sql<{ due: boolean[] }>`select array[${conditions}] as due`.execute(db.sql);
  return tasks.filter((_, nth) => rows[0]?.due[nth]);
}

/** Creates a part that checks all conditions together, because the tasks are rarely due, and runs due tasks. */
export function createDueTasks(
  tasks: readonly DueTask[],
  { db, ...parts }: RepeatedJobParts & { readonly db: Database },
): Part {
  const jobs = new Map(tasks.map((task) => [task, createRepeatedJob({ ...task, every: checkEvery }, parts)]));
  async function run(): Promise<void> {
    for (const task of await findDueTasks(db, tasks)) void jobs.get(task)?.runNow();
  }
  const checks = createRepeatedJob({ run, every: checkEvery, failureMessage: "failed to check for due tasks" }, parts);
  return {
    start: () => (tasks.length > 0 ? checks.start() : undefined),
    async stop() {
      await checks.stop();
      await Promise.all([...jobs.values()].map((job) => job.stop()));
    },
  };
}
