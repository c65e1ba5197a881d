import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { go } from "../support/livekit-build.ts";
import type { KubernetesObject } from "./helm.ts";

/** A JSON schema as Kubernetes publishes it. */
interface PublishedSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly items?: unknown;
  readonly additionalProperties?: unknown;
  readonly format?: string;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-group-version-kind"?: readonly GroupVersionKind[];
}

interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** Modules with definitions of extensions, and their files. */
const extensions = [
  ["github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases/keda.sh_scaledobjects.yaml"],
  ["sigs.k8s.io/gateway-api@v1.4.1", "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"],
  [
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
  ],
] as const;

/** Returns the directory of a Go module, which is downloaded once. */
async function moduleDirectory(module: string): Promise<string> {
  if (go === undefined) throw new Error("there is no Go to download schemas with");
  const { stdout } = await promisify(execFile)(go, ["mod", "download", "-json", module], { cwd: "/" });
  return JSON.parse(stdout).Dir;
}

const quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/** Returns the schema with unknown fields refused, as the API server does in strict validation. */
function strictly(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return schema;
  const published: PublishedSchema = schema;
  if (published.format === "int-or-string" || published["x-kubernetes-int-or-string"])
    return { type: ["string", "integer"] };
  const { properties, items, additionalProperties } = published;
  const isOpen = additionalProperties !== undefined || published["x-kubernetes-preserve-unknown-fields"];
  const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, strictly(field)]);
  return {
    ...published,
    ...(properties && { properties: Object.fromEntries(fields), ...(!isOpen && { additionalProperties: false }) }),
    ...(items !== undefined && { items: strictly(items) }),
    ...(additionalProperties !== undefined && { additionalProperties: strictly(additionalProperties) }),
  };
}

const keyOf = ({ group, version, kind }: GroupVersionKind): string =>
  `${group === "" ? "" : `${group}/`}${version}/${kind}`;

/** Reads the schemas of a Kubernetes version and of extensions. Returns a function that lists an object's faults. */
export async function readKubernetesSchemas(version: string): Promise<(object: KubernetesObject) => string[]> {
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
  const references = new Map<string, string>();
  const specification = join(await moduleDirectory(`k8s.io/kubernetes@v${version}`), "api/openapi-spec/swagger.json");
  const definitions: Record<string, PublishedSchema> = JSON.parse(await readFile(specification, "utf8")).definitions;
  for (const [name, schema] of Object.entries(definitions)) {
    for (const kind of schema["x-kubernetes-group-version-kind"] ?? [])
      references.set(keyOf(kind), `kubernetes#/definitions/${name}`);
  }
  const strict = Object.entries(definitions).map(([name, schema]) => [name, strictly(schema)]);
  const own = { ...Object.fromEntries(strict), [quantity]: { type: ["string", "number"] } };
  ajv.addSchema({ $id: "kubernetes", definitions: own });
  for (const [module, file] of extensions) {
    const { spec } = parse(await readFile(join(await moduleDirectory(module), file), "utf8"));
    for (const { name, schema } of spec.versions) {
      const key = keyOf({ group: spec.group, version: name, kind: spec.names.kind });
      const closed = strictly(schema.openAPIV3Schema);
      // Definitions of extensions leave the metadata to Kubernetes.
      const { properties } = closed as { properties: Record<string, unknown> };
      ajv.addSchema({ ...(closed as object), properties: { ...properties, metadata: {} } }, key);
      references.set(key, key);
    }
  }
  return (object) => {
    const key = `${object.apiVersion}/${object.kind}`;
    const validate = ajv.getSchema(references.get(key) ?? "");
    if (!validate) return [`Kubernetes ${version} has no ${key}`];
    validate(object);
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) =>
        `${key} ${object.metadata.name} ${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };
}
