import { create } from "@bufbuild/protobuf";
import type { BrowserPlan } from "../../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type Viewport, ViewportSchema } from "../../../src/gen/pilothouse/v1/common_pb.ts";
import type { Geolocation } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { type Archetype, defaultDevice, findArchetype } from "../../../src/platform/browsers/archetypes.ts";
import { type BlockedType, blockedTypesOf } from "./resource-block.ts";

export interface Device {
  readonly archetype: Archetype;
  readonly viewport: Viewport;
  /** BCP 47 language tag. */
  readonly locale: string;
  /** IANA time zone name. */
  readonly timezone: string;
  /** Types of resources that pages do not load. */
  readonly blockedTypes: readonly BlockedType[];
  readonly geolocation: DevicePosition | undefined;
  /** Value of `navigator.webdriver`. */
  readonly webdriver: boolean;
}

interface DevicePosition {
  readonly latitude: number;
  readonly longitude: number;
  /** Metres. */
  readonly accuracy: number;
}

type DevicePlan = Pick<BrowserPlan, "archetype" | "viewport" | "locale" | "timezone"> &
  Partial<Pick<BrowserPlan, "block" | "geolocation" | "hidesAutomation">>;

export function makeDevice({ archetype: name, ...plan }: DevicePlan): Device {
  const archetype = archetypeOf(name);
  const { locale, timezone, viewport = archetype.viewport, block, geolocation, hidesAutomation = false } = plan;
  return {
    archetype,
    viewport: create(ViewportSchema, viewport),
    locale,
    timezone,
    blockedTypes: blockedTypesOf(block),
    geolocation: geolocation && positionOf(geolocation),
    webdriver: !hidesAutomation,
  };
}

/** Creates the default device of an archetype, which warm browsers emulate. */
export function plainDevice(name: string = defaultDevice.archetype): Device {
  const archetype = archetypeOf(name);
  const { locale, timezone } = defaultDevice;
  const { viewport: size, deviceScaleFactor } = archetype;
  const viewport = create(ViewportSchema, { ...size, deviceScaleFactor });
  return { archetype, viewport, locale, timezone, blockedTypes: [], geolocation: undefined, webdriver: true };
}

function positionOf({ latitude = 0, longitude = 0, accuracy = 0 }: Geolocation): DevicePosition {
  return { latitude, longitude, accuracy };
}

function archetypeOf(name: string): Archetype {
  const archetype = findArchetype(name);
  if (!archetype) throw new Error(`unknown archetype ${name}: deploy the worker and the gateway from the same release`);
  return archetype;
}
