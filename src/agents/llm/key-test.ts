import { generateText } from "ai";
import { type ModelFaultKind, readModelFault } from "./model-fault.ts";
import { defaultModels, type LlmCredential, type Models } from "./models.ts";

/** How a key fared. */
export interface KeyTest {
  readonly model: string | undefined;
  readonly durationMs: number;
  readonly fault?: { readonly kind: ModelFaultKind; readonly message: string };
}

/** Milliseconds that the provider has. */
const patience = 30_000;

/** The fewest tokens that every provider lets one ask for. */
const fewestTokens = 16;

/** Tries a key with one word to the model that turns would run on. */
export async function testKey(
  models: Models,
  credential: LlmCredential,
  named: string | null,
  signal: AbortSignal,
): Promise<KeyTest> {
  const model = named ?? defaultModels[credential.provider];
  if (model === undefined) {
    const message = "no model is known of this provider: store one beside the key";
    return { model, durationMs: 0, fault: { kind: "model_refused", message } };
  }
  const begun = performance.now();
  const took = () => Math.round(performance.now() - begun);
  try {
    await generateText({
      ...{ model: await models.of(credential, model), prompt: "Hi", maxOutputTokens: fewestTokens, maxRetries: 0 },
      abortSignal: AbortSignal.any([signal, AbortSignal.timeout(patience)]),
    });
    return { model, durationMs: took() };
  } catch (thrown) {
    signal.throwIfAborted();
    return { model, durationMs: took(), fault: readModelFault(thrown, credential.apiKey) };
  }
}
