import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { problemOf } from "../api/problem.ts";
import { accessToken } from "../api/session-login.ts";
import { ErrorState } from "../ui/state.tsx";
import { NotFoundPage } from "./not-found-page.tsx";
import { pagePaths } from "./page-paths.ts";
import { Shell } from "./shell.tsx";

function PageError({ error, reset }: ErrorComponentProps) {
  return <ErrorState problem={problemOf(error)} retry={reset} />;
}

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFoundPage, errorComponent: PageError });

/** Pages that need a login. */
const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  component: Shell,
  beforeLoad: async ({ location }) => {
    if ((await accessToken()) === undefined) throw redirect({ to: pagePaths.logIn, search: { to: location.href } });
  },
});

/** Returns the search parameters of the login page: the page to open afterwards, which must be one of the console. */
function readTarget({ to }: Record<string, unknown>): { to?: string } {
  return typeof to === "string" && /^\/(?!\/)/.test(to) ? { to } : {};
}

const page = <const P extends string>(path: P, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => inside, path, component });
const entry = <const P extends string>(path: P, component: ReturnType<typeof lazyRouteComponent>) =>
  createRoute({ getParentRoute: () => root, path, component });

const mailLinks = () => import("../pages/entry/mail-links.tsx");
const forms = () => import("../pages/entry/entry-forms.tsx");

const routeTree = root.addChildren([
  inside.addChildren([
    page(
      pagePaths.home,
      lazyRouteComponent(() => import("../pages/home/home-page.tsx"), "HomePage"),
    ),
    page(
      pagePaths.sessions,
      lazyRouteComponent(() => import("../pages/sessions/sessions-page.tsx"), "SessionsPage"),
    ),
    page(
      pagePaths.session,
      lazyRouteComponent(() => import("../pages/sessions/session-page.tsx"), "SessionPage"),
    ),
    page(
      pagePaths.playground,
      lazyRouteComponent(() => import("../pages/playground/playground-page.tsx"), "PlaygroundPage"),
    ),
    page(
      pagePaths.agents,
      lazyRouteComponent(() => import("../pages/agents/agents-page.tsx"), "AgentsPage"),
    ),
    page(
      pagePaths.agent,
      lazyRouteComponent(() => import("../pages/agents/agent-page.tsx"), "AgentPage"),
    ),
    page(
      pagePaths.recipes,
      lazyRouteComponent(() => import("../pages/recipes/recipes-page.tsx"), "RecipesPage"),
    ),
    page(
      pagePaths.recipe,
      lazyRouteComponent(() => import("../pages/recipes/recipe-page.tsx"), "RecipePage"),
    ),
    page(
      pagePaths.profiles,
      lazyRouteComponent(() => import("../pages/profiles/profiles-page.tsx"), "ProfilesPage"),
    ),
    page(
      pagePaths.apiKeys,
      lazyRouteComponent(() => import("../pages/api-keys/api-keys-page.tsx"), "ApiKeysPage"),
    ),
    page(
      pagePaths.webhooks,
      lazyRouteComponent(() => import("../pages/webhooks/webhooks-page.tsx"), "WebhooksPage"),
    ),
    page(
      pagePaths.webhook,
      lazyRouteComponent(() => import("../pages/webhooks/webhook-page.tsx"), "WebhookPage"),
    ),
    page(
      pagePaths.usage,
      lazyRouteComponent(() => import("../pages/usage/usage-page.tsx"), "UsagePage"),
    ),
    page(
      pagePaths.team,
      lazyRouteComponent(() => import("../pages/team/team-page.tsx"), "TeamPage"),
    ),
    page(
      pagePaths.auditLog,
      lazyRouteComponent(() => import("../pages/audit/audit-page.tsx"), "AuditPage"),
    ),
    page(
      pagePaths.billing,
      lazyRouteComponent(() => import("../pages/billing/billing-page.tsx"), "BillingPage"),
    ),
    page(
      pagePaths.settings,
      lazyRouteComponent(() => import("../pages/settings/settings-page.tsx"), "SettingsPage"),
    ),
  ]),
  createRoute({
    getParentRoute: () => root,
    path: pagePaths.logIn,
    validateSearch: readTarget,
    component: lazyRouteComponent(forms, "LogInPage"),
  }),
  entry(pagePaths.signUp, lazyRouteComponent(forms, "SignUpPage")),
  entry(pagePaths.forgotten, lazyRouteComponent(forms, "ForgottenPage")),
  entry(pagePaths.firstRun, lazyRouteComponent(forms, "FirstRunPage")),
  entry(pagePaths.verifyEmail, lazyRouteComponent(mailLinks, "VerifyEmailPage")),
  entry(pagePaths.magicLink, lazyRouteComponent(mailLinks, "MagicLinkPage")),
  entry(pagePaths.passwordReset, lazyRouteComponent(mailLinks, "PasswordResetPage")),
  entry(pagePaths.invite, lazyRouteComponent(mailLinks, "InvitePage")),
  entry(pagePaths.emailChange, lazyRouteComponent(mailLinks, "EmailChangePage")),
  entry(pagePaths.undoEmailChange, lazyRouteComponent(mailLinks, "UndoEmailChangePage")),
  entry(pagePaths.accountRestore, lazyRouteComponent(mailLinks, "AccountRestorePage")),
  entry(pagePaths.revokeKeys, lazyRouteComponent(mailLinks, "RevokeKeysPage")),
]);

export const router = createRouter({
  routeTree,
  basepath: "/console",
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
