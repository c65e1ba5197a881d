import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  BundledLlmStatusSchema,
  LlmCredentialSource,
  type LlmSettingsService,
  type PutByokLlmKeyRequest,
  TestByokLlmKeyResponseSchema,
  type UpdateBundledLlmSettingsRequest,
} from "../../gen/pilothouse/v1/llm_settings_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { monthAt } from "../../limits/month.ts";
import type { Config } from "../../platform/config.ts";
import { type Failure, fail, failFields } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { openLlmKey, sealLlmKey } from "./credentials.ts";
import type { KeyTest } from "./key-test.ts";
import { capOf, toLlmKeyMessage, toSettingsMessage, toStoredProvider } from "./llm-message.ts";
import type { Models } from "./models.ts";
import {
  deleteLlmKey,
  findLlmKey,
  type LlmSettings,
  putLlmKey,
  readSettings,
  readSpending,
  recordKeyTest,
  writeSettings,
} from "./store.ts";

export interface LlmSettingsParts extends Pick<PlatformParts, "db" | "clock" | "sealer"> {
  readonly models: Models;
  readonly config: Pick<Config, "bundledLlm">;
}

/** Number of trailing characters of a key that are stored and shown, so that users can recognise the key. */
const suffixLength = 4;

const microsPerCent = 10_000;

const noKey = (): Failure => fail("not-found", {}, { detail: "the account has no LLM key" });

/** Throws `forbidden` for members: only owners and admins may change settings that cost money. */
function assertMayChange({ principal }: Call): void {
  if (principal.role === "member")
    throw fail(
      "forbidden",
      {},
      { detail: "only an owner or an admin of the account can change LLM settings: ask one of them" },
    );
}

function readChanges(request: UpdateBundledLlmSettingsRequest, now: Date): Partial<LlmSettings> {
  const paths = new Set(request.updateMask?.paths);
  const { bundledLlmConsent: consent, monthlyCapCents: cap } = request;
  if (paths.has("bundled_llm_consent") && consent === undefined)
    throw failFields("validation-failed", { bundled_llm_consent: "cannot be cleared" });
  return {
    ...(paths.has("bundled_llm_consent") && consent !== undefined && { consent }),
    ...(paths.has("bundled_llm_consent") && consent && { consented_at: now }),
    ...(paths.has("monthly_cap_cents") && { monthly_cap_cents: cap ?? null }),
    updated_at: now,
  };
}

/** Result of the test of a key that cannot be decrypted. */
const unreadableKey: KeyTest = {
  model: undefined,
  durationMs: 0,
  fault: { kind: "wrong_key", message: "the stored key can no longer be decrypted: store it again" },
};

export function createLlmSettingsService(parts: LlmSettingsParts): ServiceImplementation<typeof LlmSettingsService> {
  const { db, clock, sealer, models, config } = parts;

  async function findKey({ principal }: Call) {
    const row = await findLlmKey(db, principal.accountId);
    if (!row) throw noKey();
    return row;
  }

  async function putKey(call: Call, request: PutByokLlmKeyRequest) {
    assertMayChange(call);
    const { accountId } = call.principal;
    const { apiKey, baseUrl, model, vision } = request;
    const provider = toStoredProvider(request.provider);
    // Other characters would break the authorization header.
    if (!/^[\x21-\x7e]+$/.test(apiKey))
      throw failFields("validation-failed", {
        api_key: "must contain only printable ASCII characters, without spaces",
      });
    if (baseUrl !== undefined) await models.check(baseUrl);
    return db.transaction(async (tx) => {
      const row = await putLlmKey(tx, {
        account_id: accountId,
        provider,
        base_url: baseUrl ?? null,
        model: model ?? null,
        vision: vision ?? null,
        api_key: sealLlmKey(sealer, accountId, apiKey),
        key_suffix: apiKey.slice(-suffixLength),
        created_at: new Date(clock.now()),
        tested_at: null,
        test_ok: null,
        last_used_at: null,
      });
      call.audit(tx, { subject: accountId, data: { provider, ...(baseUrl !== undefined && { base_url: baseUrl }) } });
      return toLlmKeyMessage(row);
    });
  }

  async function test(call: Call) {
    const row = await findKey(call);
    // Loading the model libraries takes about 200 ms, which must not delay startup.
    const { testKey } = await import("./key-test.ts");
    const credential = openLlmKey(sealer, row);
    const { model, durationMs, fault } = credential
      ? await testKey(models, credential, row.model, call.signal)
      : unreadableKey;
    await recordKeyTest(db, row, new Date(clock.now()), !fault);
    return create(TestByokLlmKeyResponseSchema, {
      ok: !fault,
      durationMs,
      ...(model !== undefined && { model }),
      ...(fault && { error: fault.message, reason: fault.kind }),
    });
  }

  async function status({ principal: { accountId } }: Call) {
    const now = clock.now();
    const month = monthAt(now);
    const [key, settings, spent] = await Promise.all([
      findLlmKey(db, accountId),
      readSettings(db, accountId),
      readSpending(db, accountId, month),
    ]);
    const [cap, used] = [capOf(settings), Math.floor(spent / microsPerCent)];
    const { bundledLlm: bundled } = config;
    const isUsable = bundled !== undefined && settings.consent && used < cap;
    const next = key ? LlmCredentialSource.BYOK : isUsable ? LlmCredentialSource.BUNDLED : undefined;
    return create(BundledLlmStatusSchema, {
      available: bundled !== undefined,
      bundledLlmConsent: settings.consent,
      monthlyCapCents: cap,
      usedCents: used,
      remainingCents: Math.max(0, cap - used),
      currency: "usd",
      ...(bundled && { model: bundled.model }),
      ...(next !== undefined && { nextCredential: next }),
      resetsAt: timestampFromMs(month.endsAt),
    });
  }

  return {
    getByokLlmKey: async (call) => toLlmKeyMessage(await findKey(call)),
    putByokLlmKey: putKey,
    async deleteByokLlmKey(call) {
      assertMayChange(call);
      const { accountId } = call.principal;
      await db.transaction(async (tx) => {
        const row = await deleteLlmKey(tx, accountId);
        if (!row) throw noKey();
        call.audit(tx, { subject: accountId, data: { provider: row.provider } });
      });
      return create(EmptySchema);
    },
    testByokLlmKey: test,
    getBundledLlmSettings: async ({ principal }) => toSettingsMessage(await readSettings(db, principal.accountId)),
    async updateBundledLlmSettings(call, request) {
      assertMayChange(call);
      const { accountId } = call.principal;
      const changes = readChanges(request, new Date(clock.now()));
      return db.transaction(async (tx) => {
        const settings = await writeSettings(tx, accountId, changes);
        call.audit(tx, { subject: accountId, data: { changed: request.updateMask?.paths ?? [] } });
        return toSettingsMessage(settings);
      });
    },
    getBundledLlmStatus: status,
  };
}
