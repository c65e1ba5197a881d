import type { DescService } from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import type { Part } from "../platform/lifetime.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { DueTask } from "../platform/postgres/due-tasks.ts";
import type { RepeatedTask } from "../platform/repeated-job.ts";
import type { BearerKind } from "./bearer-kind.ts";
import type { JobKind } from "./job-kind.ts";
import { type ServedService, type ServiceImplementation, serve } from "./registry.ts";

/** A feature as listed in src/app/features.ts. `Parts` are its dependencies. */
export interface Feature<Parts> {
  /** Service that the feature implements. Available without an app, to describe the API. */
  readonly service?: DescService;
  /** Creates the kind of bearer that the feature adds. */
  readonly bearers?: (db: Database) => BearerKind;
  /** Creates the feature's parts for a gateway. */
  readonly create?: (parts: Parts) => CreatedFeature;
}

/** Parts that a feature adds to a gateway. */
export interface CreatedFeature {
  readonly served?: ServedService;
  /** Repeated jobs. They run in every gateway with a ROLE other than `api`, so runs on several gateways may overlap. */
  readonly jobs?: readonly RepeatedTask[];
  /** Tasks that run while their SQL condition holds, in the same gateways as `jobs`. */
  readonly dueTasks?: readonly DueTask[];
  /** Kinds of leased jobs that the feature handles. They run unless ROLE is `api`. */
  readonly jobKinds?: readonly JobKind<unknown>[];
  /** Long-running parts. They are started unless ROLE is `api`. */
  readonly background?: readonly Part[];
}

/** Defines a feature that implements a service. */
export function defineService<Methods extends GenServiceMethods, Parts>(feature: {
  readonly service: GenService<Methods>;
  readonly bearers?: (db: Database) => BearerKind;
  readonly create: (parts: Parts) => {
    readonly methods: ServiceImplementation<GenService<Methods>>;
    readonly jobs?: readonly RepeatedTask[];
    readonly dueTasks?: readonly DueTask[];
    readonly jobKinds?: readonly JobKind<unknown>[];
    readonly background?: readonly Part[];
  };
}): Feature<Parts> & { readonly service: DescService } {
  const { service, create } = feature;
  return {
    ...feature,
    create(parts) {
      const { methods, ...beside } = create(parts);
      return { served: serve(service, methods), ...beside };
    },
  };
}
