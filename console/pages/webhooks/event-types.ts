/** Types of events that endpoints can subscribe to, and what they report. */
export const eventTypes: readonly (readonly [type: string, about: string])[] = [
  ["session.completed", "A session ended without an error"],
  ["session.failed", "A session ended with an error"],
  ["session.challenge_detected", "A bot check paused a session"],
  ["session.egress_capability_changed", "A proxy works, or no longer works"],
  ["session.profile_save_failed", "A profile could not be saved"],
  ["agent_session.turn_ended", "A turn of an agent ended"],
  ["agent_session.person_needed", "An agent waits for a person"],
  ["api_key.revoked", "An API key was revoked"],
  ["quota.warning_80pct", "80 % of a quota is used"],
  ["quota.exceeded", "A quota is used up"],
  ["crypto.order.paid", "A crypto order was paid"],
  ["crypto.order.failed", "A crypto order failed"],
];
