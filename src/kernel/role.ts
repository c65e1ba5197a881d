/** What a user is in an account. */
export type Role = "owner" | "admin" | "member";
