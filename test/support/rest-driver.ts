import type { HostileDriver } from "./hostile-runner.ts";
import type { Rest } from "./rest.ts";

/** Controls a session, given by its path, through the REST API. */
export function restDriver(rest: Rest, session: string): HostileDriver {
  return {
    async run(operation, request) {
      const { status, body } = await rest(`${session}/${operation}`, operation === "state" ? undefined : request);
      if (status === 200) return { answer: body };
      const { type, title: _title, status: _status, detail = "", instance: _instance, ...extensions } = body;
      return { problem: { slug: type.slice(type.lastIndexOf("/") + 1), detail, extensions } };
    },
  };
}
