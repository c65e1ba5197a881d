import { useQuery } from "@connectrpc/connect-query";
import { AccountService, TeamRole } from "../../src/gen/pilothouse/v1/account_pb.ts";

/** The logged-in person, the account and the role. Changes are rare, so one response serves several pages. */
export const useMe = () => useQuery(AccountService.method.getMe, {}, { staleTime: 60_000 });

/** Returns whether the person is an owner or admin of the account. */
export function useIsManager(): boolean {
  const role = useMe().data?.role;
  return role === TeamRole.OWNER || role === TeamRole.ADMIN;
}
