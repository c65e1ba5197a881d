import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { tiers as builtIn } from "../../src/limits/tiers.ts";
import { readConfig } from "../../src/platform/config.ts";
import { releaseVersion } from "../../src/platform/release.ts";
import { readWorkerConfig } from "../../workers/base/config.ts";
import { go } from "../support/livekit-build.ts";
import { buildHelm, type KubernetesObject, lintChart, renderChart } from "./helm.ts";
import { readKubernetesSchemas } from "./kubernetes-schemas.ts";

if (go === undefined) {
  const reason = "Go is missing, so the Helm chart is not tested: install Go 1.24 or later";
  if (process.env.CI) throw new Error(reason);
  console.warn(reason);
}

const publicUrl = "https://browser.example.com";
const trial = { publicUrl, postgresql: { enabled: true }, redis: { enabled: true } };
const existing = {
  publicUrl,
  secrets: { existingSecret: "servers" },
  workers: {
    existingSecret: "token",
    pools: {
      default: null,
      large: { slots: 16, longestSession: 14_400, runtimeClassName: "gvisor" },
      shell: { runtime: "headless-shell", replicas: 1, longestSession: 1_800, autoscaling: { enabled: false } },
    },
  },
  ingress: { enabled: true, className: "nginx", tlsSecret: "certificate", grpcHost: "grpc.example.com" },
  gatewayApi: { enabled: true, parentRefs: [{ name: "public", namespace: "gateways" }] },
  networkPolicy: { clusterCidrs: ["203.0.113.0/24", "2001:db8::/32"] },
};
const extensions = ["keda.sh/v1alpha1/ScaledObject", "monitoring.coreos.com/v1/ServiceMonitor"];

beforeAll(() => (go === undefined ? undefined : buildHelm()), 1_800_000);

/** Returns the object of a kind and name. */
function find(objects: readonly KubernetesObject[], kind: string, name: string): KubernetesObject {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (!found)
    throw new Error(`expected ${kind} ${name}, got ${objects.map((each) => `${each.kind} ${each.metadata.name}`)}`);
  return found;
}

/** Returns the objects of the chart that have pods, with the pods' specification. */
const withPods = (objects: readonly KubernetesObject[]) =>
  objects.flatMap((object) =>
    object.spec?.template?.spec?.containers ? [{ object, pod: object.spec.template.spec }] : [],
  );

/** Returns the environment of an object's first container, with the contents of the chart's ConfigMaps and Secrets. */
function environmentOf(objects: readonly KubernetesObject[], object: KubernetesObject): Record<string, string> {
  const [container] = object.spec.template.spec.containers;
  const env: Record<string, string> = {};
  for (const { configMapRef } of container.envFrom ?? [])
    Object.assign(env, find(objects, "ConfigMap", configMapRef.name).data);
  const near = objects.filter(({ metadata }) => metadata.namespace === object.metadata.namespace);
  for (const { name, value, valueFrom } of container.env) {
    const key = valueFrom?.secretKeyRef;
    const text = key ? find(near, "Secret", key.name).stringData[key.key] : (value ?? "10.0.0.7");
    if (text !== undefined) env[name] = text.replace("$(POD_IP)", "10.0.0.7");
  }
  return env;
}

describe.runIf(go !== undefined)("the Helm chart", { timeout: 300_000 }, () => {
  test("passes helm lint, and has the release's version", async () => {
    for (const values of [trial, existing]) expect(await lintChart(values)).toContain("0 chart(s) failed");
    const [object] = await renderChart({ values: trial });
    expect(object?.metadata.labels["app.kubernetes.io/instance"]).toBe("trial");
    const chart = await readFile("deploy/helm/Chart.yaml", "utf8");
    expect(chart).toContain(`version: ${releaseVersion}\nappVersion: "${releaseVersion}"`);
  });

  test.for(["1.31.14", "1.36.3"])("renders valid objects of Kubernetes %s and its extensions", async (kubernetes) => {
    const faultsOf = await readKubernetesSchemas(kubernetes);
    const renderings = [
      { values: trial },
      { values: trial, isUpgrade: true, has: extensions },
      { values: existing, has: extensions },
      { values: { ...existing, secrets: { existingSecret: "servers", asFiles: true } }, isUpgrade: true },
      { values: { ...existing, networkPolicy: { enabled: false }, seccomp: { install: false, profile: "own.json" } } },
    ];
    const kinds = new Set<string>();
    for (const rendering of renderings) {
      const objects = await renderChart({ kubernetes, ...rendering });
      expect(objects.flatMap(faultsOf)).toEqual([]);
      for (const { kind } of objects) kinds.add(kind);
    }
    expect([...kinds].sort()).toEqual(
      `ConfigMap DaemonSet Deployment HTTPRoute HorizontalPodAutoscaler Ingress Job Namespace NetworkPolicy
       PodDisruptionBudget Role RoleBinding ScaledObject Secret Service ServiceAccount ServiceMonitor StatefulSet
       ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding`.split(/\s+/),
    );
    const [unknown] = faultsOf({
      ...(await renderChart({ values: trial }))[0],
      sepc: {},
    } as unknown as KubernetesObject);
    expect(unknown).toMatch(/additional properties.*sepc/);
  });

  test("runs all pods but the profile's installer under the restricted standard", async () => {
    const objects = await renderChart({ values: trial, isUpgrade: true });
    const pods = withPods(objects);
    expect(pods.length).toBe(7);
    for (const { object, pod } of pods) {
      const { name } = object.metadata;
      expect([name, pod.enableServiceLinks, pod.automountServiceAccountToken]).toEqual([
        name,
        false,
        name === "trial-pilothouse-control",
      ]);
      if (object.metadata.namespace === "browsers-seccomp") continue;
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
      for (const { securityContext } of [...pod.containers, ...(pod.initContainers ?? [])]) {
        expect(securityContext).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        expect(securityContext.runAsUser).toBeUndefined();
      }
      for (const volume of pod.volumes) expect(volume.hostPath).toBeUndefined();
    }
    const standard = "pod-security.kubernetes.io/enforce";
    expect(find(objects, "Namespace", "browsers-workers").metadata.labels[standard]).toBe("restricted");
    expect(find(objects, "Namespace", "browsers-seccomp").metadata.labels[standard]).toBe("privileged");
  });

  test("starts workers with the profile that the installer copies", async () => {
    const objects = await renderChart({ values: trial });
    const [worker] = find(objects, "Deployment", "trial-pilothouse-worker-default").spec.template.spec.containers;
    const { localhostProfile, type } = worker.securityContext.seccompProfile;
    const installer = find(objects, "DaemonSet", "trial-pilothouse-seccomp").spec.template.spec;
    const file = installer.initContainers[0].command.at(-1);
    expect(type).toBe("Localhost");
    expect(`/var/lib/kubelet/seccomp/${localhostProfile}`).toBe(`${installer.volumes[0].hostPath.path}/${file}`);
  });

  test("sets an environment that the processes accept, with variables and commands that exist", async () => {
    const objects = await renderChart({ values: { ...trial, config: { SIGNUP: "closed", QUEUE_MS: 20_000 } } });
    const read = (kind: string, name: string) =>
      environmentOf(objects, find(objects, kind, `trial-pilothouse-${name}`));
    const gateway = readConfig(read("Deployment", "gateway"));
    expect(gateway).toMatchObject({
      publicUrl,
      role: "all",
      queueMs: 20_000,
      shutdownDelayMs: 10_000,
      embedded: false,
    });
    expect(gateway.secretsKeys).toHaveLength(1);
    const ofPod = { ROLE: "control", KUBERNETES_SERVICE_HOST: "10.96.0.1" };
    const control = readConfig({ ...read("Deployment", "control"), ...ofPod });
    expect(control.workerPods).toMatchObject({ namespace: "browsers-workers", host: "10.96.0.1", port: 443 });
    const worker = readWorkerConfig(read("Deployment", "worker-default"));
    expect(worker).toMatchObject({
      pool: "default",
      address: "10.0.0.7:8090",
      drainSeconds: 3_600,
      token: control.workerToken,
    });
    expect(worker.control).toEqual([`trial-pilothouse-control.browsers.svc:${control.fleetPort}`]);
    const documented = await readFile("docs/configuration.md", "utf8");
    const entry = await readFile("deploy/entry.sh", "utf8");
    for (const { pod } of withPods(objects)) {
      for (const { args = [], env = [], image } of pod.containers) {
        if (!image.startsWith("pilothouse-")) continue;
        for (const { name } of env) expect(name === "POD_IP" || documented.includes(`\`${name}\``), name).toBe(true);
        if (args.length > 0) expect(entry).toContain(`\n  ${args[0]})`);
      }
    }
  });

  test("waits for the longest session of a pool, and refuses longer ones", async () => {
    const objects = await renderChart({ values: existing });
    for (const [pool, seconds] of [
      ["large", 14_400],
      ["shell", 1_800],
    ] as const) {
      const { spec } = find(objects, "Deployment", `trial-pilothouse-worker-${pool}`).spec.template;
      expect(spec.terminationGracePeriodSeconds).toBe(seconds + 20);
      expect(spec.containers[0].env).toContainEqual({ name: "DRAIN_SECONDS", value: String(seconds) });
    }
    const limitsWith = async (values: object) =>
      JSON.parse(find(await renderChart({ values }), "ConfigMap", "trial-pilothouse-files").data["tiers.json"]);
    const bounded = Object.fromEntries(
      builtIn.names
        .filter((name) => builtIn.get(name).longestSessionSeconds > 1_800)
        .map((name) => [name, { longest_session_seconds: 1_800 }]),
    );
    expect(await limitsWith(existing)).toEqual(bounded);
    const tiers = {
      free: { concurrent_sessions: 2, longest_session_seconds: 600 },
      api_scale: { concurrent_sessions: 7 },
    };
    expect(await limitsWith({ ...existing, tiers })).toEqual({
      ...bounded,
      free: tiers.free,
      api_scale: { concurrent_sessions: 7, longest_session_seconds: 1_800 },
    });
  });

  test("a pool overrides the defaults", async () => {
    const objects = await renderChart({ values: existing });
    const pod = (pool: string) => find(objects, "Deployment", `trial-pilothouse-worker-${pool}`).spec.template.spec;
    const images = ["large", "shell"].map((pool) => pod(pool).containers[0].image);
    expect(images).toEqual([`pilothouse-worker:${releaseVersion}`, `pilothouse-worker-shell:${releaseVersion}`]);
    expect([pod("large").runtimeClassName, pod("shell").runtimeClassName]).toEqual(["gvisor", undefined]);
    expect(pod("large").containers[0].env).toContainEqual({ name: "WORKER_SLOTS", value: "16" });
    const budget = find(objects, "PodDisruptionBudget", "trial-pilothouse-worker-shell").spec;
    // Rounded up: one worker of one, one of two.
    expect([budget.minAvailable, budget.selector.matchLabels["pilothouse/pool"]]).toEqual(["50%", "shell"]);
  });

  test("migrates in control processes at the installation, and in a Job before an upgrade", async () => {
    const migrates = async (isUpgrade: boolean) => {
      const objects = await renderChart({ values: trial, isUpgrade });
      const { env } = find(objects, "Deployment", "trial-pilothouse-control").spec.template.spec.containers[0];
      const job = objects.find(({ kind }) => kind === "Job");
      return [
        env.find(({ name }: { name: string }) => name === "MIGRATE").value,
        job?.metadata.annotations?.["helm.sh/hook"],
      ];
    };
    expect(await migrates(false)).toEqual(["on", undefined]);
    expect(await migrates(true)).toEqual(["off", "pre-upgrade"]);
  });

  test("scales pools only where KEDA is, and gateways by their CPU elsewhere", async () => {
    const kindsOf = (objects: readonly KubernetesObject[], kind: string) =>
      objects.filter((object) => object.kind === kind).map(({ metadata }) => metadata.name);
    const replicas = (objects: readonly KubernetesObject[], name: string) =>
      find(objects, "Deployment", `trial-pilothouse-${name}`).spec.replicas;
    const without = await renderChart({ values: existing });
    expect(kindsOf(without, "ScaledObject")).toEqual([]);
    expect(kindsOf(without, "HorizontalPodAutoscaler")).toEqual(["trial-pilothouse-gateway"]);
    expect([replicas(without, "worker-large"), replicas(without, "gateway")]).toEqual([2, undefined]);
    const objects = await renderChart({ values: existing, has: extensions });
    expect(kindsOf(objects, "ScaledObject").sort()).toEqual([
      "trial-pilothouse-gateway",
      "trial-pilothouse-worker-large",
    ]);
    expect(kindsOf(objects, "HorizontalPodAutoscaler")).toEqual([]);
    expect([replicas(objects, "worker-large"), replicas(objects, "worker-shell")]).toEqual([undefined, 1]);
    const { triggers, advanced } = find(objects, "ScaledObject", "trial-pilothouse-worker-large").spec;
    const { scaleUp, scaleDown } = advanced.horizontalPodAutoscalerConfig.behavior;
    expect([scaleUp.tolerance, scaleDown.tolerance]).toEqual([0, 0]);
    const service = find(objects, "Service", "trial-pilothouse-control");
    expect(triggers[0].metadata.url).toBe(`http://${service.metadata.name}.browsers.svc:8082/scale/large`);
  });

  test("workers reach control processes while PostgreSQL is down", async () => {
    const { spec } = find(await renderChart({ values: trial }), "Service", "trial-pilothouse-control");
    expect([spec.publishNotReadyAddresses, spec.clusterIP]).toEqual([true, "None"]);
  });

  test("keeps workers from private networks and those of the cluster", async () => {
    const objects = await renderChart({ values: existing });
    const { spec } = find(objects, "NetworkPolicy", "trial-pilothouse-worker");
    expect([spec.podSelector, spec.policyTypes]).toEqual([{}, ["Ingress", "Egress"]]);
    const blocks = spec.egress.flatMap(({ to }: { to: { ipBlock?: { except: string[] } }[] }) =>
      to.flatMap(({ ipBlock }) => ipBlock ?? []),
    );
    expect(blocks).toEqual([
      {
        cidr: "0.0.0.0/0",
        except: [
          "10.0.0.0/8",
          "100.64.0.0/10",
          "127.0.0.0/8",
          "169.254.0.0/16",
          "172.16.0.0/12",
          "192.168.0.0/16",
          "203.0.113.0/24",
        ],
      },
      { cidr: "::/0", except: ["fc00::/7", "fe80::/10", "2001:db8::/32"] },
    ]);
    expect(spec.egress[0].ports).toEqual([{ port: 8083 }]);
  });

  test("lets control processes set deletion costs of workers' pods, and nothing else", async () => {
    const objects = await renderChart({ values: trial });
    const { metadata, rules } = find(objects, "Role", "trial-pilothouse-pod-costs");
    expect([metadata.namespace, rules]).toEqual([
      "browsers-workers",
      [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "patch"] }],
    ]);
    const { pod } = withPods(objects).find(({ object }) => object.metadata.name === "trial-pilothouse-control") ?? {};
    const { subjects } = find(objects, "RoleBinding", "trial-pilothouse-pod-costs");
    expect(subjects).toEqual([{ kind: "ServiceAccount", name: pod.serviceAccountName, namespace: "browsers" }]);
    expect(pod.containers[0].env).toContainEqual({ name: "WORKER_PODS", value: "browsers-workers" });
    const { matchConditions } = find(objects, "ValidatingAdmissionPolicy", "trial-pilothouse-pod-costs.browsers").spec;
    expect(matchConditions[0].expression).toContain(`"system:serviceaccount:browsers:${pod.serviceAccountName}"`);
  });

  test("makes no Secret beside an existing one, which workers do not see", async () => {
    const objects = await renderChart({ values: existing });
    expect(objects.some(({ kind }) => kind === "Secret")).toBe(false);
    const secretsOf = (name: string) => {
      const { env } = find(objects, "Deployment", `trial-pilothouse-${name}`).spec.template.spec.containers[0];
      return env.flatMap(({ valueFrom }: { valueFrom?: { secretKeyRef?: { name: string; key: string } } }) => {
        const key = valueFrom?.secretKeyRef;
        return key ? [`${key.name} ${key.key}`] : [];
      });
    };
    expect(secretsOf("worker-large")).toEqual(["token WORKER_TOKEN"]);
    expect(secretsOf("control")).toEqual(
      ["DATABASE_URL", "REDIS_URL", "SECRETS_KEYS", "WORKER_TOKEN"].map((key) => `servers ${key}`),
    );
    expect(secretsOf("gateway")).not.toContain("servers WORKER_TOKEN");
  });

  test("mounts secrets as files", async () => {
    const secrets = { existingSecret: "servers", asFiles: true, optional: ["SMTP_URL"] };
    const objects = await renderChart({ values: { ...existing, secrets } });
    const { containers, volumes } = find(objects, "Deployment", "trial-pilothouse-gateway").spec.template.spec;
    const [{ env, volumeMounts }] = containers;
    const { mountPath } = volumeMounts.find(({ name }: { name: string }) => name === "secrets");
    const { secret } = volumes.find(({ name }: { name: string }) => name === "secrets");
    const names = ["DATABASE_URL", "REDIS_URL", "SECRETS_KEYS", "SMTP_URL"];
    expect(secret).toEqual({ secretName: "servers", items: names.map((name) => ({ key: name, path: name })) });
    for (const name of names) expect(env).toContainEqual({ name: `${name}_FILE`, value: `${mountPath}/${name}` });
    expect(JSON.stringify(containers)).not.toContain("secretKeyRef");
  });

  test.for<[string, object, RegExp]>([
    ["no address", {}, /publicUrl is required/],
    ["no servers", { publicUrl }, /secrets.existingSecret, databaseUrl or postgresql.enabled/],
    ["no token for workers", { publicUrl, secrets: { existingSecret: "a" } }, /workers.existingSecret is required/],
    ["an unknown value", { ...trial, gateway: {} }, /additional properties 'gateway' not allowed/],
    ["a secret among variables", { ...trial, config: { "smtp-url": "x" } }, /smtp-url/],
    ["a pool's name with capitals", { ...trial, workers: { pools: { Large: {} } } }, /Large/],
    ["a session of two days", { ...trial, workers: { defaults: { longestSession: 172_800 } } }, /maximum/],
    ["routes without a Gateway", { ...trial, gatewayApi: { enabled: true } }, /parentRefs/],
  ])("refuses %s", async ([, values, message]) => {
    await expect(renderChart({ values })).rejects.toThrow(message);
  });
});
