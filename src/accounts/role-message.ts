import { TeamRole } from "../gen/pilothouse/v1/account_pb.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";

/** Converts roles between rows and messages; an unspecified role becomes undefined. */
export const { toMessage: toRoleMessage, toStored: toRole } = storedNames(TeamRole);
