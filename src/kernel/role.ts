/** Role of a user in an account. */
export type Role = "owner" | "admin" | "member";
