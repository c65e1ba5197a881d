import { Link } from "@tanstack/react-router";
import { Compass } from "lucide-react";
import { buttonClass } from "../ui/button.tsx";
import { EmptyState } from "../ui/state.tsx";
import { pagePaths } from "./page-paths.ts";

export function NotFoundPage() {
  return (
    <main className="grid min-h-dvh place-items-center">
      <h1 className="sr-only">Page not found</h1>
      <EmptyState
        icon={Compass}
        title="There is no such page"
        action={
          <Link to={pagePaths.home} className={buttonClass("primary")}>
            Open the console
          </Link>
        }
      >
        The address may be incomplete, or the page may have moved.
      </EmptyState>
    </main>
  );
}
