import { Tier } from "../gen/pilothouse/v1/account_pb.ts";
import { type TierName, tiers } from "./tiers.ts";

// The boundary between the names in rows and in the contract, which are the same but for their case.
const upper = (name: TierName) => name.toUpperCase() as Uppercase<TierName>;

/** The tier of a row in the contract. */
export const toTierMessage = (name: string): Tier => Tier[upper(tiers.get(name).name)];
