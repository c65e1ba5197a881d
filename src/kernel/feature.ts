import type { DescService } from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import type { Part } from "../platform/lifetime.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { RepeatedWork } from "../platform/repeated-job.ts";
import type { BearerKind } from "./bearer-kind.ts";
import { type ServedService, type ServiceImplementation, serve } from "./registry.ts";
import type { WorkKind } from "./work-kind.ts";

/** One feature, as src/app/features.ts lists it. `Parts` is what it takes of the app. */
export interface Feature<Parts> {
  /** The service that it implements: it can be described without an app. */
  readonly service?: DescService;
  /** A kind of bearer that it brings. */
  readonly bearers?: (db: Database) => BearerKind;
  /** Makes what runs in a gateway. */
  readonly create?: (parts: Parts) => CreatedFeature;
}

/** What a feature adds to a gateway. */
export interface CreatedFeature {
  readonly served?: ServedService;
  /** Background work: it runs unless ROLE is `api`, in every gateway that does jobs, and does no harm there. */
  readonly jobs?: readonly RepeatedWork[];
  /** Kinds of leased work that it knows how to do: gateways do it unless ROLE is `api`. */
  readonly works?: readonly WorkKind<unknown>[];
  /** What runs all the time, beside others of its kind: as well unless ROLE is `api`. */
  readonly background?: readonly Part[];
}

/** A feature that implements a service of the contract. */
export function defineService<Methods extends GenServiceMethods, Parts>(feature: {
  readonly service: GenService<Methods>;
  readonly bearers?: (db: Database) => BearerKind;
  readonly create: (parts: Parts) => {
    readonly methods: ServiceImplementation<GenService<Methods>>;
    readonly jobs?: readonly RepeatedWork[];
    readonly works?: readonly WorkKind<unknown>[];
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
