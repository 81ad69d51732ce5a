import { expect, test } from "vitest";
import { readBucket, type BoundBucket } from "./bound-bucket.ts";

test("a read that is aborted rejects at once, and cancels the body that comes after", async () => {
  let isCancelled = false;
  const body = new ReadableStream({ cancel: () => void (isCancelled = true) });
  let answer = (_found: unknown): void => {};
  const bucket = { get: () => new Promise((resolve) => (answer = resolve)), head: () => Promise.resolve(null) };
  const abort = new AbortController();
  const reading = readBucket(bucket as unknown as BoundBucket, "name", { signal: abort.signal });
  abort.abort(new Error("too late"));
  await expect(reading).rejects.toThrow("too late");
  answer({ body });
  await expect.poll(() => isCancelled).toBe(true);
});
