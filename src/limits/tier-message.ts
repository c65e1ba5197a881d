import { Tier } from "../gen/pilothouse/v1/account_pb.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import type { TierName } from "./tiers.ts";

const { toMessage } = storedNames(Tier);

/** Converts a stored tier to its proto enum; a tier of a later release is unspecified. */
export const toTierMessage = (name: string): Tier => toMessage(name as TierName);
