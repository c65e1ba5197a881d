import { create } from "@bufbuild/protobuf";
import { type Viewport, ViewportSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import type { CreateSessionRequest } from "../../src/gen/pilothouse/v1/session_pb.ts";
import {
  type Archetype,
  closeArchetypes,
  DEFAULT_ARCHETYPE,
  findArchetype,
  isDesktop,
} from "../../src/platform/archetypes.ts";
import { failFields } from "../../src/platform/errors.ts";

/** The device that a session emulates. */
export interface Device {
  readonly archetype: Archetype;
  readonly viewport: Viewport;
  /** BCP 47 language tag. */
  readonly locale: string;
  /** IANA name of a time zone. */
  readonly timezone: string;
}

/** What a session's creator says of its device. */
type DeviceWish = Pick<CreateSessionRequest, "archetype" | "viewport" | "locale" | "timezone">;

/** Works out the device of a session from what its creator asked for. */
export function makeDevice({ archetype: name = DEFAULT_ARCHETYPE, ...wish }: DeviceWish): Device {
  const archetype = archetypeOf(name);
  const { locale = "en-US", timezone = "UTC" } = wish;
  return { archetype, viewport: viewportOf(archetype, wish.viewport), locale, timezone };
}

function archetypeOf(name: string): Archetype {
  const archetype = findArchetype(name);
  if (archetype) return archetype;
  const close = closeArchetypes(name);
  const hint = close.length > 0 ? `; did you mean ${close.join(", ")}?` : "";
  throw failFields("validation-failed", { archetype: `there is no archetype of this name${hint}` });
}

function viewportOf(archetype: Archetype, wanted: Viewport | undefined): Viewport {
  if (wanted && !isDesktop(archetype)) {
    throw failFields("validation-failed", { viewport: "only desktop archetypes have pages of another size" });
  }
  const { width, height } = wanted ?? archetype.viewport;
  const deviceScaleFactor = wanted?.deviceScaleFactor || archetype.deviceScaleFactor;
  return create(ViewportSchema, { width, height, deviceScaleFactor });
}
