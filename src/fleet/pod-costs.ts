import type { PlatformParts } from "../platform/platform-parts.ts";
import { createRepeatedJob, type RepeatedJob } from "../platform/repeated-job.ts";
import { type ClusterAccess, KubernetesError, requestKubernetes } from "./kubernetes-api.ts";
import { heldSlots, holdsLease } from "./store.ts";

/** Annotation by which Kubernetes orders the pods of a Deployment that shrinks, the lowest cost first. */
const annotation = "controller.kubernetes.io/pod-deletion-cost";

/** Milliseconds between updates. Kubernetes recommends updating the annotation rarely. */
const updateEvery = 10_000;

/** Slots per step of the cost, so that a busy worker's pod is rarely patched. */
const step = 8;

/** Pods per page of a list, and the maximum number of pages read. */
const list = { size: 500, pages: 20 };

export interface PodCostParts extends Pick<PlatformParts, "db" | "clock" | "log"> {
  readonly access: ClusterAccess;
  /** Namespace of the workers' pods. */
  readonly namespace: string;
}

/** Fields of a pod that this job reads. */
interface Pod {
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly status?: { readonly podIP?: string };
}

interface PodList {
  readonly items: readonly Pod[];
  readonly metadata: { readonly continue?: string };
}

const hostOf = (address: string): string => address.replace(/:\d+$/, "").replace(/^\[(.+)\]$/, "$1");

const costOf = (held: number): number => (held === 0 ? 0 : 1 + step * Math.floor(held / step));

/**
 * Creates the job that sets the deletion cost of workers' pods, so that a pool that shrinks loses idle workers first.
 * Each control process runs the job, and patches a pod only if its cost differs. Logs only the first of consecutive
 * failures, for example those of a missing permission.
 */
export function createPodCosts({ access, namespace, db, clock, log }: PodCostParts): RepeatedJob {
  const path = `/api/v1/namespaces/${namespace}/pods`;
  let isFailing = false;

  async function findPods(): Promise<Pod[]> {
    const pods: Pod[] = [];
    let next = "";
    for (let page = 0; page < list.pages; page += 1) {
      const query = new URLSearchParams({
        limit: String(list.size),
        fieldSelector: "status.phase=Running",
        continue: next,
      });
      // The API server validates its own responses.
      const { items, metadata } = (await requestKubernetes(access, {
        method: "GET",
        path: `${path}?${query}`,
      })) as PodList;
      pods.push(...items);
      next = metadata.continue ?? "";
      if (next === "") break;
    }
    return pods;
  }

  async function setCost({ metadata: { name } }: Pod, cost: string): Promise<void> {
    try {
      const patch = { metadata: { annotations: { [annotation]: cost } } };
      await requestKubernetes(access, { method: "PATCH", path: `${path}/${name}`, patch });
    } catch (error) {
      if (!(error instanceof KubernetesError && error.status === 404)) throw error;
    }
  }

  async function update(): Promise<void> {
    const pods = await findPods();
    const workers = await db.sql
      .selectFrom("workers")
      .innerJoin("worker_leases", "worker_id", "id")
      .select("address")
      .select(heldSlots)
      .where(holdsLease)
      .execute();
    const costs = new Map(workers.map(({ address, held }) => [hostOf(address), String(costOf(held))]));
    for (const pod of pods) {
      const cost = costs.get(pod.status?.podIP ?? "");
      // Without the annotation the cost is 0.
      if (cost !== undefined && cost !== (pod.metadata.annotations?.[annotation] ?? "0")) await setCost(pod, cost);
    }
  }

  async function run(): Promise<void> {
    try {
      await update();
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.warn({ err: error, namespace }, "failed to set deletion costs of workers' pods");
      isFailing = true;
    }
  }

  return createRepeatedJob({ run, every: updateEvery, failureMessage: "failed to set deletion costs" }, { clock, log });
}
