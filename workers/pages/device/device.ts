import { create } from "@bufbuild/protobuf";
import type { BrowserPlan } from "../../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type Viewport, ViewportSchema } from "../../../src/gen/pilothouse/v1/common_pb.ts";
import { type Archetype, defaultDevice, findArchetype } from "../../../src/platform/browsers/archetypes.ts";

/** The device that a session emulates. */
export interface Device {
  readonly archetype: Archetype;
  readonly viewport: Viewport;
  /** BCP 47 language tag. */
  readonly locale: string;
  /** IANA name of a time zone. */
  readonly timezone: string;
}

/** Finds the device of a plan. */
export function makeDevice({ archetype: name, ...plan }: Pick<BrowserPlan, keyof Device>): Device {
  const archetype = archetypeOf(name);
  const { locale, timezone, viewport = archetype.viewport } = plan;
  return { archetype, viewport: create(ViewportSchema, viewport), locale, timezone };
}

/** The device of a session whose creator chose an archetype at the most: browsers are launched ahead for it. */
export function plainDevice(name: string = defaultDevice.archetype): Device {
  const archetype = archetypeOf(name);
  const { locale, timezone } = defaultDevice;
  const { viewport: size, deviceScaleFactor } = archetype;
  return { archetype, viewport: create(ViewportSchema, { ...size, deviceScaleFactor }), locale, timezone };
}

function archetypeOf(name: string): Archetype {
  const archetype = findArchetype(name);
  if (!archetype) throw new Error(`there is no archetype ${name}: the gateway that planned it is of another release`);
  return archetype;
}
