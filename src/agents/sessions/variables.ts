import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type SecretVariable, SecretVariableSchema } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  type CreateAgentSessionRequest,
  CreateAgentSessionRequestSchema,
} from "../../gen/pilothouse/v1/agent_session_pb.ts";
import type { FieldFault } from "../../platform/errors.ts";
import { domainFaults } from "../../platform/outgoing/domain-list.ts";
import type { Sealer } from "../../platform/secrets/secrets-sealer.ts";

type Variables = CreateAgentSessionRequest["variables"];

/** Maximum characters of all values together: the worker searches for the values in all output of a session. */
const maxCharacters = 16_384;

const contextOf = (accountId: string) => ({ accountId, purpose: "agent-variables" });

/** Returns the faults that the proto rules of the fields cannot express. */
export function findVariableFaults({ variables, recipeParameters }: CreateAgentSessionRequest): FieldFault[] {
  const faults = Object.entries(variables).flatMap(([name, { domains }]) => {
    const wrong = domainFaults(domains, `variables.${name}.domains`);
    const isTaken = Object.hasOwn(recipeParameters, name);
    return isTaken ? [...wrong, { field: `recipe_parameters.${name}`, message: "is also in variables" }] : wrong;
  });
  const characters = Object.values(variables).reduce((sum, { value }) => sum + value.length, 0);
  if (characters > maxCharacters)
    faults.push({ field: "variables", message: `must have at most ${maxCharacters} characters in total` });
  return faults;
}

/** Encrypts variables. No method of the API returns their values. Returns null if there are no variables. */
export function sealVariables(sealer: Sealer, accountId: string, variables: Variables): Buffer | null {
  if (Object.keys(variables).length === 0) return null;
  const plain = toBinary(CreateAgentSessionRequestSchema, create(CreateAgentSessionRequestSchema, { variables }));
  return sealer.seal(plain, contextOf(accountId));
}

/** Decrypts variables for the worker. */
export function openVariables(sealer: Sealer, accountId: string, sealed: Buffer | null): SecretVariable[] {
  if (sealed === null) return [];
  const { variables } = fromBinary(CreateAgentSessionRequestSchema, sealer.open(sealed, contextOf(accountId)));
  return Object.entries(variables).map(([name, { value, domains }]) =>
    create(SecretVariableSchema, { name, value, domains }),
  );
}
