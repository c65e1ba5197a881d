import { create } from "@bufbuild/protobuf";
import type { BrowserPlan } from "../../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type Viewport, ViewportSchema } from "../../../src/gen/pilothouse/v1/common_pb.ts";
import { type Archetype, defaultDevice, findArchetype } from "../../../src/platform/browsers/archetypes.ts";

export interface Device {
  readonly archetype: Archetype;
  readonly viewport: Viewport;
  /** BCP 47 language tag. */
  readonly locale: string;
  /** IANA time zone name. */
  readonly timezone: string;
}

export function makeDevice({ archetype: name, ...plan }: Pick<BrowserPlan, keyof Device>): Device {
  const archetype = archetypeOf(name);
  const { locale, timezone, viewport = archetype.viewport } = plan;
  return { archetype, viewport: create(ViewportSchema, viewport), locale, timezone };
}

/** Creates the default device of an archetype, for which browsers are launched ahead. */
export function plainDevice(name: string = defaultDevice.archetype): Device {
  const archetype = archetypeOf(name);
  const { locale, timezone } = defaultDevice;
  const { viewport: size, deviceScaleFactor } = archetype;
  return { archetype, viewport: create(ViewportSchema, { ...size, deviceScaleFactor }), locale, timezone };
}

function archetypeOf(name: string): Archetype {
  const archetype = findArchetype(name);
  if (!archetype) throw new Error(`unknown archetype ${name}: deploy the worker and the gateway from the same release`);
  return archetype;
}
