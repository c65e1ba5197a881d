import { callUnaryMethod, useTransport } from "@connectrpc/connect-query";
import { useNavigate } from "@tanstack/react-router";
import { BookOpen, ChevronsUpDown, LogOut } from "lucide-react";
import { useState } from "react";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { useMe } from "../api/me.ts";
import { problemOf, toSentence } from "../api/problem.ts";
import { queryClient } from "../api/queries.ts";
import { endLogin, switchAccount } from "../api/session-login.ts";
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuLine } from "../ui/menu.tsx";
import { toast } from "../ui/toast.tsx";
import { type ColorScheme, chooseScheme, chosenScheme } from "./color-scheme.ts";
import { pagePaths } from "./page-paths.ts";

/** Menu of the logged-in user: switches the account and the colour scheme, and logs out. */
export function AccountMenu() {
  const { data: me } = useMe();
  const [scheme, setScheme] = useState(chosenScheme);
  const navigate = useNavigate();
  const transport = useTransport();
  const name = me?.user?.name || me?.user?.email || "";
  const memberships = me?.memberships ?? [];

  const enter = (accountId: string): void => {
    switchAccount(accountId).then(
      async () => {
        await navigate({ to: pagePaths.home });
        await queryClient.resetQueries();
      },
      (error) => toast(toSentence(problemOf(error).detail), { isFault: true }),
    );
  };
  const leave = (): void => {
    endLogin(() => callUnaryMethod(transport, AuthService.method.logOut, {})).then(
      () => queryClient.clear(),
      (error) => toast(toSentence(problemOf(error).detail), { isFault: true }),
    );
  };
  const choose = (next: ColorScheme): void => {
    chooseScheme(next);
    setScheme(next);
  };

  return (
    <Menu
      align="start"
      trigger={
        <button
          type="button"
          className="flex w-full items-center gap-2.5 rounded-lg p-1.5 text-left transition-colors hover:bg-hover"
        >
          <span
            aria-hidden="true"
            className="grid size-7 shrink-0 place-items-center rounded-full bg-accent-wash text-xs font-semibold text-accent-text uppercase"
          >
            {name.slice(0, 1)}
          </span>
          <span className="min-w-0 flex-1">
            <span className="block truncate text-sm leading-tight font-medium">{me?.account?.name ?? "Account"}</span>
            <span className="block truncate text-xs leading-tight text-faint">{name}</span>
          </span>
          <ChevronsUpDown size={14} aria-hidden="true" className="text-faint" />
        </button>
      }
    >
      <MenuLabel>{me?.user?.email}</MenuLabel>
      {memberships.length > 1 && (
        <>
          <MenuChoice
            label="Account"
            value={me?.account?.id ?? ""}
            choices={memberships.map(({ accountId, accountName }) => [accountId, accountName] as const)}
            onChoose={enter}
          />
          <MenuLine />
        </>
      )}
      <MenuChoice
        label="Colours"
        value={scheme}
        choices={[
          ["system", "As on this device"],
          ["light", "Light"],
          ["dark", "Dark"],
        ]}
        onChoose={choose}
      />
      <MenuLine />
      <MenuItem onSelect={() => open("/docs", "_blank", "noopener")}>
        <BookOpen size={15} aria-hidden="true" />
        API reference
      </MenuItem>
      <MenuItem onSelect={leave}>
        <LogOut size={15} aria-hidden="true" />
        Log out
      </MenuItem>
    </Menu>
  );
}
