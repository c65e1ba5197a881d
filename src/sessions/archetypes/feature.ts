import { create } from "@bufbuild/protobuf";
import { ArchetypeService, ArchetypesSchema } from "../../gen/pilothouse/v1/archetype_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { archetypes as known } from "../../platform/browsers/archetypes.ts";

/** Serves the device archetypes, which are constant within a release. */
export const archetypeFeature = defineService({
  service: ArchetypeService,
  create: () => ({ methods: { list: async () => all } }),
});

// Frozen, so that the REST server encodes it once.
const all = Object.freeze(
  create(ArchetypesSchema, {
    data: known.map(({ name, viewport, deviceScaleFactor, hasTouch, userAgent }) => ({
      name,
      viewport: { ...viewport, deviceScaleFactor },
      touch: hasTouch,
      ...(userAgent !== undefined && { userAgent }),
    })),
  }),
);
