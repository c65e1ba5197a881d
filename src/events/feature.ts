import { EventService } from "../gen/pilothouse/v1/event_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { sweepTask } from "../platform/sweep-task.ts";
import { createEventService, type EventServiceParts } from "./service.ts";

export const events = defineService({
  service: EventService,
  create: (parts: EventServiceParts) => ({
    methods: createEventService(parts),
    jobs: [sweepTask(parts.events.sweep, "failed to delete old events")],
  }),
});
