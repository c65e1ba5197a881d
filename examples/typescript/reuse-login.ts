// Logs in once, and reuses the login in later runs: SHOP_PASSWORD=... node reuse-login.ts https://shop.example
import { Pilothouse } from "@pilothouse/sdk";

interface Profile {
  readonly id: string;
  readonly name: string;
}

const [shop = ""] = process.argv.slice(2);
const client = new Pilothouse();

/** Returns the profile of the shop, which the first run creates. */
async function findProfile(): Promise<Profile> {
  for await (const profile of client.list<Profile>("/v1/profiles")) if (profile.name === "shop") return profile;
  return await client.request<Profile>("POST", "/v1/profiles", { body: { name: "shop" } });
}

const { id } = await findProfile();
// The end of the session saves its cookies and storage in the profile.
await using session = await client.sessions.create({ profile_id: id });
const { title } = await session.goto(`${shop}/account`);
if (title === "Log in") {
  await session.fill("[name=user]", "ada");
  await session.fill("[name=password]", process.env.SHOP_PASSWORD ?? "");
  await session.tap("button");
  await session.wait("#account");
  console.log("logged in");
} else {
  console.log("reused the login");
}
console.log((await session.state()).title);
