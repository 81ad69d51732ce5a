import { createHash, createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { SigningHash } from "./signing-hash.ts";

const DATA = Buffer.from("what is signed");
const BYTES = new Uint8Array(40).subarray(4, 36).fill(7);

test.each([["secret"], [BYTES], [new Uint8Array(BYTES).buffer]])("an HMAC by a secret, twice: %s", async (secret) => {
  const own = typeof secret === "string" ? secret : BYTES;
  for (let i = 0; i < 2; i++) {
    const hash = new SigningHash(secret);
    hash.update(DATA);
    expect(await hash.digest()).toEqual(createHmac("sha256", own).update(DATA).digest());
  }
});

test("a hash without a secret, and again after a reset", async () => {
  const hash = new SigningHash();
  hash.update(Buffer.from("other"));
  hash.reset();
  hash.update(DATA);
  expect(await hash.digest()).toEqual(createHash("sha256").update(DATA).digest());
});
