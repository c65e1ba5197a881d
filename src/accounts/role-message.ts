import { TeamRole, TeamRoleSchema } from "../gen/pilothouse/v1/account_pb.ts";
import { enumNames } from "../platform/rest-json/names.ts";
import type { Role } from "./tables.ts";

// The boundary between the names in rows and in the contract, which are the same but for their case.
const upper = (role: Role) => role.toUpperCase() as Uppercase<Role>;
const names = enumNames(TeamRoleSchema) as Map<TeamRole, Role>;

/** The role of a row in the contract. */
export const toRoleMessage = (role: Role): TeamRole => TeamRole[upper(role)];

/** The role that a message means; undefined when it does not say one. */
export const toRole = (role: TeamRole): Role | undefined => names.get(role);
