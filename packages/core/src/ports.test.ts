import { expect, test } from "vitest";
import { hex } from "../test/objects/sample-object.ts";
import { crc32 } from "./format/crc32.ts";
import { systemClock, systemSha256 } from "./ports.ts";

test("systemSha256 returns the digest of FIPS 180-4's example", async () => {
  expect(hex(await systemSha256(new TextEncoder().encode("abc")))).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});

test("crc32 returns the check value of CRC-32/ISO-HDLC, and 0 for no bytes", () => {
  expect(crc32(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
  expect(crc32(new Uint8Array(0))).toBe(0);
});

test("a timer of systemClock fires once, and not when it was cancelled", async () => {
  let fired = 0;
  systemClock.after(1, () => fired++);
  systemClock.after(1, () => (fired += 100))();
  await new Promise<void>((resolve) => systemClock.after(20, resolve));
  expect(fired).toBe(1);
  expect(systemClock.now()).toBeGreaterThan(0);
});
