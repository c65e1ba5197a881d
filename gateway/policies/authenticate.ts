import type { App } from "../../src/app.ts";
import type { GatewayCall } from "../call.ts";
import { type AddressBucket, refuseEmpty } from "./address-bucket.ts";

const WHOSE = "your address, which sends no valid key,";

/**
 * Finds out who calls. A key that was valid just now passes; anything else is looked up only while the client's address has
 * tokens left, and draws one when it fails, so that guessing is slow and cannot lock out a good key behind the same address.
 */
export async function authenticate(app: App, addresses: AddressBucket, call: GatewayCall): Promise<void> {
  if (call.served.rules.public) {
    await drawFromAddress(addresses, call);
    return;
  }
  const authorization = call.header("authorization");
  const known = app.apiKeys.peek(authorization);
  if (known) {
    call.principal = known;
    return;
  }
  if (!app.apiKeys.isKnown(authorization)) {
    const state = addresses.look(call.clientAddress);
    call.show(state);
    refuseEmpty(state, WHOSE);
  }
  try {
    call.principal = await app.apiKeys.authenticate(authorization);
  } catch (thrown) {
    await drawFromAddress(addresses, call);
    throw thrown;
  }
}

async function drawFromAddress(addresses: AddressBucket, call: GatewayCall): Promise<void> {
  const state = await addresses.draw(call.clientAddress);
  call.show(state);
  refuseEmpty(state, WHOSE);
}
