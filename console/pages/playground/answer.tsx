import type { JsonValue } from "@bufbuild/protobuf";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";

/** Beginnings of pictures in Base64, with their types. */
const pictureTypes = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["UklGR", "image/webp"],
] as const;

/** Minimum length of a text without spaces that counts as the content of a file. */
const fileLength = 1_000;

interface Answer {
  /** Texts of several lines, and pictures, by the names of their fields. */
  readonly texts: [name: string, text: string][];
  readonly pictures: [name: string, url: string][];
}

/** Returns JSON without pictures and long texts, and adds them to `answer`. */
function split(value: JsonValue, name: string, answer: Answer): JsonValue {
  if (Array.isArray(value)) return value.map((each) => split(each, name, answer));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, split(inner, key, answer)]));
  }
  if (typeof value !== "string") return value;
  const [, type] = pictureTypes.find(([start]) => value.startsWith(start)) ?? [];
  if (type !== undefined) answer.pictures.push([name, `data:${type};base64,${value}`]);
  else if (value.includes("\n")) answer.texts.push([name, value]);
  else if (value.length < fileLength || value.includes(" ")) return value;
  return `… ${value.length.toLocaleString()} characters`;
}

/** The response of the service: its JSON, with long texts and pictures shown separately. */
export function ResponseCard({ json }: { readonly json: JsonValue }) {
  const answer: Answer = { texts: [], pictures: [] };
  const rest = JSON.stringify(split(json, "response", answer), null, 2);
  return (
    <Card title="Response">
      <div className="flex flex-col gap-4">
        {answer.pictures.map(([name, url]) => (
          <img key={url} src={url} alt={`The page in ${name}`} className="rounded-lg border border-line" />
        ))}
        {answer.texts.map(([name, text]) => (
          <div key={text}>
            <p className="mb-1.5 font-mono text-xs text-faint">{name}</p>
            <Code text={text} label={name} className="max-h-96 overflow-auto" />
          </div>
        ))}
        <Code text={rest} label="the response" />
      </div>
    </Card>
  );
}
