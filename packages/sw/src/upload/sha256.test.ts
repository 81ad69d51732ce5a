import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { Sha256Parts } from "./sha256.ts";

test("the hash of parts of any length is that of the whole", () => {
  for (let length = 0; length < 300; length++) {
    const whole = randomBytes(length);
    const parts = new Sha256Parts();
    for (let at = 0; at < length;) {
      const part = whole.subarray(at, at + 1 + Math.floor(Math.random() * 90));
      parts.update(part);
      at += part.length;
    }
    expect(parts.hex(), `${length} bytes`).toBe(createHash("sha256").update(whole).digest("hex"));
  }
});
