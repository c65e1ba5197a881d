import {
  Bot,
  ChartNoAxesColumn,
  CreditCard,
  House,
  KeyRound,
  ListChecks,
  type LucideIcon,
  MonitorPlay,
  ScrollText,
  Settings,
  UserRound,
  Users,
  Webhook,
} from "lucide-react";
import { pagePaths } from "./page-paths.ts";

/** A page of the navigation. */
export interface NavigationItem {
  readonly to: (typeof pagePaths)[keyof typeof pagePaths];
  readonly title: string;
  readonly icon: LucideIcon;
}

export const navigation: readonly { readonly title: string; readonly items: readonly NavigationItem[] }[] = [
  {
    title: "Browsers",
    items: [
      { to: pagePaths.home, title: "Home", icon: House },
      { to: pagePaths.sessions, title: "Sessions", icon: MonitorPlay },
      { to: pagePaths.agents, title: "Agents", icon: Bot },
      { to: pagePaths.recipes, title: "Recipes", icon: ListChecks },
      { to: pagePaths.profiles, title: "Profiles", icon: UserRound },
    ],
  },
  {
    title: "Develop",
    items: [
      { to: pagePaths.apiKeys, title: "API keys", icon: KeyRound },
      { to: pagePaths.webhooks, title: "Webhooks", icon: Webhook },
      { to: pagePaths.usage, title: "Usage", icon: ChartNoAxesColumn },
    ],
  },
  {
    title: "Account",
    items: [
      { to: pagePaths.team, title: "Team", icon: Users },
      { to: pagePaths.auditLog, title: "Audit log", icon: ScrollText },
      { to: pagePaths.billing, title: "Billing", icon: CreditCard },
      { to: pagePaths.settings, title: "Settings", icon: Settings },
    ],
  },
];
