import { cp } from "node:fs/promises";
import { join, resolve } from "node:path";
import { buildImage, buildImageAs, podman } from "../../support/podman.ts";
import { extractPrevious } from "../../support/previous-release.ts";

const targets = ["gateway", "worker"] as const;
const nameOf = (target: string, tag: string) => `localhost/pilothouse-${target}:${tag}`;

/** Builds an image of the servers that a cluster and a trial need. */
export const buildServer = (target: string): Promise<string> =>
  buildImage("test/deploy/servers/Dockerfile", "test/deploy/servers", target);

/** Builds the images, or takes those of GATEWAY_IMAGE and WORKER_IMAGE. Returns their names, which have the tag. */
export async function prepareImages(tag: string): Promise<string[]> {
  const { GATEWAY_IMAGE, WORKER_IMAGE } = process.env;
  const given = { gateway: GATEWAY_IMAGE, worker: WORKER_IMAGE };
  const names: string[] = [];
  for (const target of targets) {
    const image = given[target] || (await buildImage("deploy/Dockerfile", ".", target));
    await podman("tag", image, nameOf(target, tag));
    names.push(nameOf(target, tag));
  }
  return names;
}

/**
 * Builds the images of the previous release, unless podman has them. If that release has no directory `deploy`, it is
 * built with ours. Returns their names, which have the tag.
 */
export async function preparePreviousImages(tag: string): Promise<string[]> {
  const names = targets.map((target) => nameOf(target, tag));
  const has = await Promise.all(
    names.map((name) =>
      podman("image", "exists", name).then(
        () => true,
        () => false,
      ),
    ),
  );
  if (has.every(Boolean)) return names;
  await using release = await extractPrevious();
  const own = ["deploy", ".dockerignore"];
  for (const path of own) await cp(resolve(path), join(release.root, path), { recursive: true, force: false });
  for (const target of targets) {
    const file = join(release.root, "deploy/Dockerfile");
    await buildImageAs(nameOf(target, tag), file, release.root, target);
  }
  return names;
}
