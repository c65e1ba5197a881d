import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

/** Encodes DER. A length is one byte up to 127, otherwise a count followed by the bytes of the length. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = 0x30;
const hex = (text: string) => Buffer.from(text, "hex");
const commonName = hex("0603550403");
const ecdsaWithSha256 = der(sequence, hex("06082a8648ce3d040302"));

/** Creates a key and a self-signed certificate for servers on loopback. */
export function makeSelfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = der(sequence, der(0x31, der(sequence, commonName, der(0x0c, Buffer.from("fixture")))));
  const time = (years: number) => {
    const at = new Date(Date.now() + years * 365 * 86_400_000).toISOString();
    return der(0x17, Buffer.from(`${at.replaceAll(/\D/g, "").slice(2, 14)}Z`));
  };
  const body = der(
    sequence,
    der(0x02, Buffer.concat([hex("01"), randomBytes(8)])),
    ecdsaWithSha256,
    name,
    der(sequence, time(-1), time(1)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
  );
  const signature = der(0x03, hex("00"), sign("sha256", body, privateKey));
  const lines = der(sequence, body, ecdsaWithSha256, signature)
    .toString("base64")
    .match(/.{1,64}/g);
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines?.join("\n")}\n-----END CERTIFICATE-----\n`,
  };
}
