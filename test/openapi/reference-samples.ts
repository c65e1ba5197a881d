import { firstExample, type Parameter } from "../../gateway/openapi/model.ts";
import { fillPath } from "../../gateway/pages/curl.ts";
import { sdkSampleOf } from "../../gateway/pages/sdk-samples.ts";
import { builtServices, describeServices } from "../../tools/described-services.ts";

/** Session of the samples, which the answer of every request describes. */
export const sampleSession = "ses_01jd2z5r1v7k9m3q8t4w6x0y2b";
export const sampleAnswer = { id: sampleSession, data: "", has_more: false, next_cursor: null };

/** Sample of the reference page, with the request that it sends. */
interface ReferenceSample {
  readonly typescript: string;
  readonly python: string;
  readonly line: string;
  readonly body: unknown;
}

/** Returns all samples of the reference page, except those that follow a stream. */
export function referenceSamples(): readonly ReferenceSample[] {
  return Object.entries(describeServices(builtServices).paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([verb, operation]) => {
      const own = (operation.parameters ?? []).flatMap((each): Parameter[] => ("$ref" in each ? [] : [each]));
      const sample = sdkSampleOf({ verb, path, operation }, own);
      if (!sample || /(?:events|logs)\(/.test(sample.typescript)) return [];
      const required = own.filter((parameter) => parameter.in === "query" && parameter.required);
      const query = new URLSearchParams(required.map(({ name, example }) => [name, String(example)])).toString();
      const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
      const body = type === "application/json" && media ? firstExample(media) : undefined;
      return [{ ...sample, line: `${verb.toUpperCase()} ${fillPath(path, own)}${query && `?${query}`}`, body }];
    }),
  );
}
