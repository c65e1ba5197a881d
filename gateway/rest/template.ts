import { failFields } from "../../src/platform/errors.ts";

/** The variable of a path that is no field of the message: what it says is a bearer. */
export const tokenVariable = "token";

/** A path template of google.api.http, as our protos use it: literals and one variable per segment. */
export interface PathTemplate {
  /** The template in the router's syntax, `/v1/sessions/:id`. */
  readonly route: string;
  /** Names of the variables, in order. */
  readonly variables: readonly string[];
  /** Matches a whole path; a group for each variable. */
  readonly pattern: RegExp;
}

/** The variables of a path that a template matches, percent-decoded; undefined where it does not. */
export function matchPath({ pattern, variables }: PathTemplate, path: string): Record<string, string> | undefined {
  const match = pattern.exec(path);
  return match ? Object.fromEntries(variables.map((name, index) => [name, decode(match[index + 1] ?? "")])) : undefined;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw failFields("bad-request", { path: "is not a valid URL path" });
  }
}

/** Reads a template such as `/v1/sessions/{id}/navigate`. */
export function parseTemplate(template: string): PathTemplate {
  const variables: string[] = [];
  const segments = template.split("/").map((segment) => {
    const variable = /^\{([a-z_]+)\}$/.exec(segment)?.[1];
    if (variable === undefined && /[{}*:]/.test(segment)) {
      throw new Error(`path template ${template}: only {variable} segments are supported`);
    }
    if (variable !== undefined) {
      variables.push(variable);
      return { route: `:${variable}`, pattern: "([^/]+)" };
    }
    return { route: segment, pattern: segment.replaceAll(".", "\\.") };
  });
  return {
    route: segments.map((segment) => segment.route).join("/"),
    variables,
    pattern: new RegExp(`^${segments.map((segment) => segment.pattern).join("/")}$`),
  };
}
