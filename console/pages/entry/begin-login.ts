import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { type ApiProblem, problemOf } from "../../api/problem.ts";
import { queryClient } from "../../api/queries.ts";
import { beginLogin } from "../../api/session-login.ts";

/** Begins a login by a refresh token, and then opens a page of the console. */
export function useBeginLogin(to = "/") {
  const navigate = useNavigate();
  const [problem, setProblem] = useState<ApiProblem>();
  const [isPending, setPending] = useState(false);
  const begin = async (refreshToken: string): Promise<void> => {
    setPending(true);
    try {
      await beginLogin(refreshToken);
      queryClient.clear();
      await navigate({ href: to });
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setPending(false);
    }
  };
  return { begin, problem, isPending };
}
