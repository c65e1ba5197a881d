import { EventService } from "../gen/pilothouse/v1/event_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { createEventService, type EventServiceParts } from "./service.ts";

/** Milliseconds between two deletions of old events. */
const sweepEvery = 600_000;

export const events = defineService({
  service: EventService,
  create: (parts: EventServiceParts) => ({
    methods: createEventService(parts),
    jobs: [{ run: parts.events.sweep, every: sweepEvery, complaint: "old events cannot be deleted at the moment" }],
  }),
});
