import { AgaroseError, type FetchPort } from "@agarose/core";
import { AVOID_MS, AVOID_MS_MAX } from "@agarose/core/sources";
import { beforeEach, describe, expect, test } from "vitest";
import { CircuitBreakers, FAILURES_MAX } from "./circuit-breakers.ts";

let nowMs: number;
let breakers: CircuitBreakers;
beforeEach(() => {
  nowMs = 0;
  breakers = new CircuitBreakers({ now: () => nowMs, after: () => () => {} });
});

/** One request to region `r0` that ends with `outcome`. */
async function ask(outcome: number | Error, signal = new AbortController().signal): Promise<void> {
  const port: FetchPort = async () => {
    if (typeof outcome !== "number") throw outcome;
    return new Response(null, { status: outcome });
  };
  await breakers
    .guard("r0", port)("http://r0.example", { signal })
    .catch(() => {});
}

async function fail(times: number, outcome: number | Error = 503): Promise<void> {
  for (let i = 0; i < times; i++) await ask(outcome);
}

describe("a breaker", () => {
  test.each([503, 500, 429, new TypeError("connection refused")])(
    "opens after failures in a row: %s",
    async (outcome) => {
      await fail(FAILURES_MAX - 1, outcome);
      expect(breakers.isOpen("r0")).toBe(false);
      await fail(1, outcome);
      expect(breakers.isOpen("r0")).toBe(true);
      expect(breakers.isOpen("r1")).toBe(false);
    },
  );

  test.each([200, 206, 403, 404])("takes %i for an answer", async (status) => {
    await fail(FAILURES_MAX - 1);
    await ask(status);
    await fail(FAILURES_MAX - 1);
    expect(breakers.isOpen("r0")).toBe(false);
  });

  test("learns nothing from aborts or from our own refusals", async () => {
    for (let i = 0; i < 2 * FAILURES_MAX; i++) {
      await ask(new Error("aborted"), AbortSignal.abort());
      await ask(new AgaroseError("SOURCE_FAILED", "no subrequest is left"));
    }
    expect(breakers.isOpen("r0")).toBe(false);
  });

  test("lets one request try after a while, and closes when that is answered", async () => {
    await fail(FAILURES_MAX);
    nowMs = AVOID_MS;
    expect(breakers.isOpen("r0")).toBe(false);
    const answer = Promise.withResolvers<Response>();
    const trial = breakers.guard("r0", () => answer.promise)("http://r0.example", {});
    expect(breakers.isOpen("r0"), "while one tries, the others do not").toBe(true);
    answer.resolve(new Response(null, { status: 206 }));
    await trial;
    expect(breakers.isOpen("r0")).toBe(false);
    await fail(FAILURES_MAX - 1);
    expect(breakers.isOpen("r0"), "it starts from nothing").toBe(false);
  });

  test("stays open twice as long each time the trial fails, up to a minute", async () => {
    await fail(FAILURES_MAX);
    for (const ms of [AVOID_MS, 2 * AVOID_MS, 4 * AVOID_MS, 8 * AVOID_MS, AVOID_MS_MAX, AVOID_MS_MAX]) {
      nowMs += ms - 1;
      expect(breakers.isOpen("r0")).toBe(true);
      nowMs += 1;
      expect(breakers.isOpen("r0")).toBe(false);
      await fail(1);
    }
  });

  test("is not kept open longer by requests of last resort, and is closed by one that succeeds", async () => {
    await fail(FAILURES_MAX + 10);
    nowMs = AVOID_MS;
    expect(breakers.isOpen("r0")).toBe(false);
    await fail(1);
    expect(breakers.isOpen("r0")).toBe(true);
    await ask(200);
    expect(breakers.isOpen("r0")).toBe(false);
  });

  test("gives another request a try when a trial was aborted or is never answered", async () => {
    await fail(FAILURES_MAX);
    nowMs = AVOID_MS;
    await ask(new Error("aborted"), AbortSignal.abort());
    expect(breakers.isOpen("r0")).toBe(false);
    void breakers.guard("r0", () => new Promise(() => {}))("http://r0.example", {});
    expect(breakers.isOpen("r0")).toBe(true);
    nowMs += 10_000;
    expect(breakers.isOpen("r0")).toBe(false);
  });
});
