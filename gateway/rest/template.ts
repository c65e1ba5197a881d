import { failFields } from "../../src/platform/errors.ts";

/** Name of the path variable or query parameter that contains a bearer, and is not a field of the message. */
export const tokenVariable = "token";

/** A path template of google.api.http, limited to literals and one variable per segment. */
export interface PathTemplate {
  /** Template in the router's syntax, `/v1/sessions/:id`. */
  readonly route: string;
  /** Names of the variables, in order. */
  readonly variables: readonly string[];
  /** Matches a whole path, with a group for each variable. */
  readonly pattern: RegExp;
}

/**
 * Returns the percent-decoded variables of a path; undefined if the template does not match. Throws `bad-request` for
 * an invalid percent-encoding.
 */
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

/** Parses a template such as `/v1/sessions/{id}/navigate`. */
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
