import { useQuery } from "@connectrpc/connect-query";
import { useNavigate } from "@tanstack/react-router";
import { useId, useState } from "react";
import { type Archetype, ArchetypeService } from "../../../src/gen/pilothouse/v1/archetype_pb.ts";
import { ProfileService } from "../../../src/gen/pilothouse/v1/profile_pb.ts";
import { SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { problemOf, toSentence } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { pagePaths } from "../../app/page-paths.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { ProblemNotice } from "../../ui/state.tsx";
import { toast } from "../../ui/toast.tsx";

/** Device of a session without a chosen device. */
const defaultDevice = "desktop-chrome";

/** Popular devices, which are listed first. */
const common = [defaultDevice, "desktop-chrome-hidpi", "iphone-15", "pixel-7", "ipad-pro-11"];

/** Short side in CSS pixels from which a touch device is listed as a tablet. */
const smallestTablet = 600;

const kinds = ["Computer", "Phone", "Tablet"] as const;

function kindOf({ touch, viewport }: Archetype): (typeof kinds)[number] {
  if (!touch) return "Computer";
  return Math.min(viewport?.width ?? 0, viewport?.height ?? 0) < smallestTablet ? "Phone" : "Tablet";
}

/** Devices in the order of the list: common ones, then those of each kind. */
function inListOrder(devices: readonly Archetype[]): readonly Archetype[] {
  const first = common.flatMap((name) => devices.filter((device) => device.name === name));
  const ofKind = kinds.flatMap((kind) =>
    devices.filter((device) => kindOf(device) === kind && !first.includes(device)),
  );
  return [...first, ...ofKind];
}

/** Text by which a device is found: its name and kind. */
const searchText = (device: Archetype): string => `${device.name}, ${kindOf(device).toLowerCase()}`;

/** Returns the device of this name, else the first one that the text finds. */
function findDevice(devices: readonly Archetype[], text: string): Archetype | undefined {
  const wanted = text.trim().toLowerCase();
  return devices.find(({ name }) => name === wanted) ?? devices.find((device) => searchText(device).includes(wanted));
}

interface DeviceFieldProps {
  readonly devices: readonly Archetype[];
  readonly text: string;
  readonly onChange: (text: string) => void;
}

/** Search of a device by its name or kind. The hint names the device that the text finds. */
function DeviceField({ devices, text, onChange }: DeviceFieldProps) {
  const listId = useId();
  const found = findDevice(devices, text);
  const hint = found ? `${found.name}, a ${kindOf(found).toLowerCase()}` : "No device has this name or kind";
  return (
    <div>
      <TextField
        label="Device"
        list={listId}
        placeholder={defaultDevice}
        maxLength={100}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        value={text}
        onChange={({ target }) => onChange(target.value)}
        hint={text.trim() === "" ? "Search by name, or by computer, phone or tablet" : hint}
      />
      <datalist id={listId}>
        {devices.map((device) => (
          <option key={device.name} value={device.name} label={searchText(device)} />
        ))}
      </datalist>
    </div>
  );
}

/** URL of the demo page, if this service has one. */
const demoUrl = document.querySelector<HTMLMetaElement>("meta[name=demo-page]")?.content || undefined;

/** Value of the profile field that creates a profile. */
const newProfile = "new";

/** Form of a new session. Opens the session when it is live. */
export function NewSession({ onClose, profileId = "" }: { readonly onClose: () => void; readonly profileId?: string }) {
  const navigate = useNavigate();
  const [isDetailed, setDetailed] = useState(false);
  const [address, setAddress] = useState("");
  const [deviceText, setDeviceText] = useState("");
  const [profile, setProfile] = useState(profileId);
  const archetypes = useQuery(ArchetypeService.method.list, {}, { staleTime: Number.POSITIVE_INFINITY });
  const devices = inListOrder(archetypes.data?.data ?? []);
  const device = findDevice(devices, deviceText);
  const profiles = useQuery(ProfileService.method.list, { limit: 100 });
  const createProfile = useChange(ProfileService.method.create, { changes: [ProfileService] });
  const deleteProfile = useChange(ProfileService.method.delete, { changes: [ProfileService] });
  const create = useChange(SessionService.method.create, {
    changes: [SessionService],
    onDone: ({ id }) => navigate({ to: pagePaths.session, params: { id } }),
  });
  const load = useChange(SessionService.method.navigate);
  const submit = (form: FormData): void => {
    const [name, proxy] = [textOf(form, "name"), textOf(form, "proxy")];
    const runtime = textOf(form, "runtime");
    const [locale, timezone, minutes] = [textOf(form, "locale"), textOf(form, "timezone"), textOf(form, "minutes")];
    const request = {
      labels: name === undefined ? {} : { name },
      ...(device && deviceText.trim() !== "" && { archetype: device.name }),
      ...(runtime !== undefined && { runtime }),
      ...(locale !== undefined && { locale }),
      ...(timezone !== undefined && { timezone }),
      ...(minutes !== undefined && { timeoutSeconds: Number(minutes) * 60 }),
      ...(proxy !== undefined && { proxy: { server: proxy } }),
    };
    const start = async (): Promise<void> => {
      const profileName = name?.slice(0, 200) ?? `Profile of ${new Date().toLocaleString()}`;
      const made = profile === newProfile ? (await createProfile.runAsync({ name: profileName })).id : undefined;
      const used = made ?? profile;
      const { id } = await create
        .runAsync(used === "" ? request : { ...request, profileId: used })
        .catch(async (error: unknown) => {
          // The service refuses to delete the profile if the session was created and only its response was lost.
          if (made !== undefined) await deleteProfile.runAsync({ id: made }).catch(() => undefined);
          throw error;
        });
      const text = address.trim();
      if (text === "") return;
      await load
        .runAsync({ id, url: text.includes("://") ? text : `https://${text}` })
        .catch((error) => toast(toSentence(problemOf(error).detail), { isFault: true }));
    };
    // A rejection is shown as the problem of its method.
    start().catch(() => undefined);
  };
  return (
    <Dialog title="New session" isOpen onClose={onClose}>
      <Form onSubmit={submit}>
        <TextField
          label="Name"
          name="name"
          placeholder="Optional, such as Checkout test"
          maxLength={256}
          autoComplete="off"
        />
        <TextField
          label="Address"
          inputMode="url"
          placeholder="Optional, such as example.com"
          maxLength={8_192}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          value={address}
          onChange={({ target }) => setAddress(target.value)}
          hint={
            demoUrl && (
              <button type="button" className="text-accent-text hover:underline" onClick={() => setAddress(demoUrl)}>
                Use the demo page
              </button>
            )
          }
        />
        <div className="grid gap-4 sm:grid-cols-2">
          <DeviceField devices={devices} text={deviceText} onChange={setDeviceText} />
          <SelectField
            label="Browser"
            name="runtime"
            problem={create.problem}
            hint="Chromium is heavier, and has video"
          >
            <option value="">headless-shell</option>
            <option value="chromium">chromium</option>
          </SelectField>
        </div>
        <SelectField
          label="Profile"
          name="profile_id"
          value={profile}
          onChange={({ target }) => setProfile(target.value)}
          problem={create.problem}
          hint="Keeps cookies and logins for later sessions; saved when the session ends"
        >
          <option value="">None</option>
          <option value={newProfile}>New profile</option>
          {profiles.data?.data.map(({ id, name, activeSessionId }) => (
            <option key={id} value={id} disabled={activeSessionId !== undefined}>
              {name}
              {activeSessionId !== undefined && " (in use)"}
            </option>
          ))}
        </SelectField>
        {isDetailed ? (
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField
              label="Minutes"
              name="minutes"
              inputMode="numeric"
              pattern="[0-9]+"
              hint="Lifetime; default: the longest of the tier"
              problem={create.problem}
            />
            <TextField label="Locale" name="locale" placeholder="en-US" problem={create.problem} />
            <TextField label="Time zone" name="timezone" placeholder="UTC" problem={create.problem} />
            <TextField label="Proxy" name="proxy" placeholder="http://proxy.example:8080" problem={create.problem} />
          </div>
        ) : (
          <Button kind="quiet" size="small" className="self-start" onClick={() => setDetailed(true)}>
            More options
          </Button>
        )}
        <ProblemNotice problem={create.problem ?? createProfile.problem} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            kind="primary"
            disabled={archetypes.data !== undefined && device === undefined}
            isPending={create.isPending || createProfile.isPending || deleteProfile.isPending}
          >
            Start
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}
