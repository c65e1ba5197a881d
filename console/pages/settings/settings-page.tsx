import { useMe } from "../../api/me.ts";
import { Page } from "../../ui/page.tsx";
import { Loaded } from "../../ui/state.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { DeleteAccount, NamesCard, PreferencesCard } from "./account-cards.tsx";
import { BundledCard, LlmKeyCard } from "./llm-cards.tsx";
import { SecondFactorCard } from "./second-factor-card.tsx";
import { EmailCard, LoginsCard, PasswordCard } from "./security-cards.tsx";

export function SettingsPage() {
  const me = useMe();
  return (
    <Page title="Settings">
      <Loaded query={me}>
        {(data) => (
          <Tabs
            label="Settings"
            items={[
              {
                id: "account",
                title: "Account",
                content: () => (
                  <div className="flex flex-col gap-5">
                    <NamesCard me={data} />
                    <PreferencesCard />
                    <DeleteAccount me={data} />
                  </div>
                ),
              },
              {
                id: "security",
                title: "Security",
                content: () => (
                  <div className="flex flex-col gap-5">
                    <SecondFactorCard isOn={data.user?.mfaEnrolled === true} />
                    <PasswordCard />
                    <EmailCard email={data.user?.email ?? ""} />
                    <LoginsCard />
                  </div>
                ),
              },
              {
                id: "llm",
                title: "Models",
                content: () => (
                  <div className="flex flex-col gap-5">
                    <LlmKeyCard />
                    <BundledCard />
                  </div>
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Page>
  );
}
