import { EventService } from "../gen/pilothouse/v1/event_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { createEventService, type EventServiceParts } from "./service.ts";

/** Milliseconds between deletions of expired events. */
const sweepEvery = 600_000;

export const events = defineService({
  service: EventService,
  create: (parts: EventServiceParts) => ({
    methods: createEventService(parts),
    jobs: [{ run: parts.events.sweep, every: sweepEvery, complaint: "failed to delete old events" }],
  }),
});
