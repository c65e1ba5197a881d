import { TeamRole } from "../gen/pilothouse/v1/account_pb.ts";
import { storedNames } from "../platform/rest-json/names.ts";

/** The role of a row in the contract, and the role that a message means; undefined when it does not say one. */
export const { toMessage: toRoleMessage, toStored: toRole } = storedNames(TeamRole);
