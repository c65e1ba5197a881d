import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { Menu as MenuIcon, Search, X } from "lucide-react";
import { Dialog } from "radix-ui";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useAccountWatch } from "../api/account-watch.ts";
import { useMe } from "../api/me.ts";
import { isTabLogin, loginStore } from "../api/session-login.ts";
import { IconButton } from "../ui/button.tsx";
import { AccountMenu } from "./account-menu.tsx";
import { CommandPalette } from "./command-palette.tsx";
import { Interruptions } from "./interruption-dialogs.tsx";
import { Logo } from "./logo.tsx";
import { navigation } from "./navigation.ts";
import { pagePaths } from "./page-paths.ts";

/** Navigation and content of all pages that need a login. */
export function Shell() {
  const [isSearching, setSearching] = useState(false);
  useLoginRedirect();
  useAccountWatch(useMe().data?.account?.id);
  useEffect(() => {
    const open = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setSearching(true);
    };
    addEventListener("keydown", open);
    return () => removeEventListener("keydown", open);
  }, []);
  const search = () => setSearching(true);
  return (
    <div className="flex min-h-dvh flex-col lg:flex-row">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:rounded-lg focus:bg-raised focus:px-3 focus:py-2"
      >
        Skip to the content
      </a>
      <aside className="sticky top-0 hidden h-dvh w-60 shrink-0 flex-col border-r border-line bg-surface lg:flex">
        <Sidebar onSearch={search} />
      </aside>
      <TopBar onSearch={search} />
      <Content />
      <CommandPalette isOpen={isSearching} onClose={() => setSearching(false)} />
      <Interruptions />
    </div>
  );
}

/** Opens the login page when the login has ended, also in another tab. */
function useLoginRedirect(): void {
  const navigate = useNavigate();
  const { href, pathname } = useLocation();
  const status = useSyncExternalStore(loginStore.subscribe, loginStore.status);
  useEffect(() => {
    if (status === "out" && pathname !== pagePaths.logIn) void navigate({ to: pagePaths.logIn, search: { to: href } });
  }, [status, navigate, href, pathname]);
}

function Content() {
  const { pathname } = useLocation();
  const main = useRef<HTMLElement>(null);
  const shown = useRef(pathname);
  useEffect(() => {
    // Screen readers continue at the new page. The first page keeps the browser's focus.
    if (shown.current !== pathname) main.current?.focus({ preventScroll: true });
    shown.current = pathname;
  }, [pathname]);
  return (
    <main id="content" ref={main} tabIndex={-1} className="min-w-0 flex-1 outline-none">
      {isTabLogin && (
        <p className="border-b border-line bg-warn-wash px-4 py-2 text-sm text-warn sm:px-8">
          This address is plain http, so the login ends with this tab. Set PUBLIC_URL to an https address to stay logged
          in.
        </p>
      )}
      <Outlet />
    </main>
  );
}

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

const linkClass =
  "flex h-8 items-center gap-2.5 rounded-lg px-2.5 text-sm text-soft transition-colors hover:bg-hover hover:text-ink";

function Sidebar({ onSearch, onLeave }: { readonly onSearch: () => void; readonly onLeave?: () => void }) {
  return (
    <>
      <div className="flex h-14 items-center px-4">
        <Link to={pagePaths.home} className="flex items-center gap-2.5 rounded-md font-semibold tracking-tight">
          <Logo />
          Pilothouse
        </Link>
      </div>
      <div className="px-3 pb-2">
        <button
          type="button"
          onClick={onSearch}
          className="flex h-8 w-full items-center gap-2 rounded-lg border border-line bg-sunken px-2.5 text-sm text-faint transition-colors hover:border-line-strong"
        >
          <Search size={14} aria-hidden="true" />
          <span className="flex-1 text-left">Find</span>
          <kbd className="font-sans text-2xs">{isApple ? "⌘K" : "Ctrl K"}</kbd>
        </button>
      </div>
      <nav aria-label="Pages" className="flex-1 overflow-y-auto px-3 pb-4">
        {navigation.map(({ title, items }) => (
          <div key={title} className="mt-3">
            <p className="px-2.5 pb-1 text-2xs font-medium tracking-wide text-faint">{title}</p>
            <ul>
              {items.map(({ to, title: name, icon: Icon }) => (
                <li key={to}>
                  <Link
                    to={to as "/"}
                    onClick={() => onLeave?.()}
                    activeOptions={{ exact: to === pagePaths.home }}
                    className={linkClass}
                    activeProps={{ className: "!bg-hover !text-ink font-medium", "aria-current": "page" }}
                  >
                    <Icon size={16} aria-hidden="true" />
                    {name}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <div className="border-t border-line p-3">
        <AccountMenu />
      </div>
    </>
  );
}

/** Bar of narrow screens, with the navigation in a sheet. */
function TopBar({ onSearch }: { readonly onSearch: () => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <header className="sticky top-0 z-30 flex h-13 items-center gap-1 border-b border-line bg-surface px-2 lg:hidden">
      <Dialog.Root open={isOpen} onOpenChange={setOpen}>
        <Dialog.Trigger asChild>
          <IconButton label="Open the navigation" className="!size-10">
            <MenuIcon size={18} aria-hidden="true" />
          </IconButton>
        </Dialog.Trigger>
        <Dialog.Portal>
          <Dialog.Overlay className="fade fixed inset-0 z-40 bg-[rgb(8_10_16/0.5)]" />
          <Dialog.Content
            aria-describedby={undefined}
            className="slide fixed inset-y-0 left-0 z-50 flex w-[min(18rem,85vw)] flex-col bg-surface shadow-high"
          >
            <Dialog.Title className="sr-only">Navigation</Dialog.Title>
            <Dialog.Close asChild>
              <IconButton label="Close the navigation" className="absolute top-3 right-2">
                <X size={16} aria-hidden="true" />
              </IconButton>
            </Dialog.Close>
            <Sidebar
              onSearch={() => {
                setOpen(false);
                onSearch();
              }}
              onLeave={() => setOpen(false)}
            />
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
      <Link to={pagePaths.home} className="flex flex-1 items-center gap-2 font-semibold tracking-tight">
        <Logo />
        Pilothouse
      </Link>
      <IconButton label="Find pages and ids" onClick={onSearch} className="!size-10">
        <Search size={18} aria-hidden="true" />
      </IconButton>
    </header>
  );
}
