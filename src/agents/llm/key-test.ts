import { generateText } from "ai";
import { type ModelFaultKind, readModelFault } from "./model-fault.ts";
import { defaultModels, type LlmCredential, type Models } from "./models.ts";

export interface KeyTest {
  readonly model: string | undefined;
  readonly durationMs: number;
  readonly fault?: { readonly kind: ModelFaultKind; readonly message: string };
}

/** Milliseconds until the test times out. */
const testTimeout = 30_000;

/** The lowest token limit that every provider accepts. */
const fewestTokens = 16;

/** Tests a key with a one-word prompt to the model stored with the key, or else to the provider's default model. */
export async function testKey(
  models: Models,
  credential: LlmCredential,
  named: string | null,
  signal: AbortSignal,
): Promise<KeyTest> {
  const model = named ?? defaultModels[credential.provider];
  if (model === undefined) {
    const message = "the provider has no default model: store a model with the key";
    return { model, durationMs: 0, fault: { kind: "model_refused", message } };
  }
  const begun = performance.now();
  const took = () => Math.round(performance.now() - begun);
  try {
    await generateText({
      model: await models.of(credential, model),
      prompt: "Hi",
      maxOutputTokens: fewestTokens,
      maxRetries: 0,
      abortSignal: AbortSignal.any([signal, AbortSignal.timeout(testTimeout)]),
    });
    return { model, durationMs: took() };
  } catch (thrown) {
    signal.throwIfAborted();
    return { model, durationMs: took(), fault: readModelFault(thrown, credential.apiKey) };
  }
}
