/** A path template of google.api.http, as our protos use it: literals and one variable per segment. */
export interface PathTemplate {
  /** The template in the router's syntax, `/v1/sessions/:id`. */
  readonly route: string;
  /** Names of the variables, in order. */
  readonly variables: readonly string[];
  /** Matches a whole path. */
  readonly pattern: RegExp;
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
      return { route: `:${variable}`, pattern: "[^/]+" };
    }
    return { route: segment, pattern: segment.replaceAll(".", "\\.") };
  });
  return {
    route: segments.map((segment) => segment.route).join("/"),
    variables,
    pattern: new RegExp(`^${segments.map((segment) => segment.pattern).join("/")}$`),
  };
}
