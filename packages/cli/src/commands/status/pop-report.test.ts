import { rejectionOf } from "@agarose/core/testing";
import { expect, test } from "vitest";
import { ask } from "./pop-report.ts";

test.each([200, 502])("an answer of %i without an end is given up", async (status) => {
  let parts = 0;
  const fetch = async (): Promise<Response> => {
    const part = new Uint8Array(1024 * 1024).fill(0x20);
    const body = new ReadableStream({ pull: (controller) => void (parts++, controller.enqueue(part)) });
    return new Response(body, { status });
  };
  const error = await rejectionOf(ask("https://fra.test/v1/status", { fetch, token: "t", timeoutMs: 60_000 } as never));
  expect(error).toMatchObject({ code: "SOURCE_FAILED" });
  expect(parts).toBeLessThan(20);
});
