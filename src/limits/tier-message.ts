import { Tier } from "../gen/pilothouse/v1/account_pb.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import { tiers } from "./tiers.ts";

const { toMessage } = storedNames(Tier);

/** Converts a stored tier to its proto enum. */
export const toTierMessage = (name: string): Tier => toMessage(tiers.get(name).name);
