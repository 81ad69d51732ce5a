import { beforeAll, describe, expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { testPublisher, type TestPublisher } from "../../test/objects/publisher.ts";
import { acceptUnsigned, keyIdOf, rawPublicKey, trustPublishers } from "./signature.ts";

const CONTENT = new TextEncoder().encode("agarose-manifest/2\n{}");
let old: TestPublisher;
let current: TestPublisher;

beforeAll(async () => {
  [old, current] = await Promise.all([testPublisher(), testPublisher()]);
});

describe("trustPublishers", () => {
  test("accepts what one of the trusted keys signed, so that keys can be replaced one after the other", async () => {
    const trust = trustPublishers([old.publicKey, current.publicKey]);
    await trust(CONTENT, await old.sign(CONTENT));
    await trust(CONTENT, await current.sign(CONTENT));
  });

  test("refuses what is not signed, is signed by another key, or was changed after it was signed", async () => {
    const trust = trustPublishers([current.publicKey]);
    const signature = await current.sign(CONTENT);
    const forged = { ...(await old.sign(CONTENT)), keyId: signature.keyId };
    for (const [content, offered] of [
      [CONTENT, undefined],
      [CONTENT, await old.sign(CONTENT)],
      [CONTENT, forged],
      [CONTENT.subarray(1), signature],
    ] as const) {
      expect((await rejectionOf(trust(content, offered))).code).toBe("MANIFEST_UNTRUSTED");
    }
  });

  test("refuses a configuration without keys, with too many, or with one that is malformed", () => {
    for (const keys of [[], Array.from({ length: 9 }, () => current.publicKey), ["ed25519:AAAA"], ["rsa:x"], [""]]) {
      expect(() => trustPublishers(keys)).toThrow(/public key/);
    }
  });

  test("names a key by the first 16 hex digits of its SHA-256", async () => {
    const raw = rawPublicKey(current.publicKey);
    expect(raw).toHaveLength(32);
    expect(await keyIdOf(raw)).toBe((await current.sign(CONTENT)).keyId);
  });
});

test("acceptUnsigned accepts everything", async () => {
  await acceptUnsigned(CONTENT, undefined);
});
