/** Tests of the stream itself only; `bundle-source.test.ts` tests it in use. */
import { expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { AgaroseError } from "../errors.ts";
import type { Frame } from "../format/bundle.ts";
import { ShardStream, type Frames } from "./shard-stream.ts";

const NEVER = new AbortController().signal;

/** A stream of these frames, which fails behind the last one. */
function streamOfFrames(frames: readonly Frame[]): { stream: ShardStream; cancelled: () => number } {
  const rest = [...frames];
  let cancelled = 0;
  const source: Frames = {
    next: async () => {
      const next = rest.shift();
      if (!next) throw new TypeError("connection reset");
      return next;
    },
    cancel: async () => void cancelled++,
  };
  const missing = ({ stripe, chunk }: { stripe: number; chunk: number }): AgaroseError =>
    new AgaroseError("CHUNK_MISSING", `region r1 lacks ${stripe}:${chunk}`, { stripe, chunk });
  return { stream: new ShardStream(Promise.resolve(source), missing), cancelled: () => cancelled };
}

function frame(type: Frame["type"], stripe: number, chunk: number): Frame {
  return { type, stripe, chunk, payload: new Uint8Array([stripe, chunk]) };
}

test("a shard that the stream lacks rejects with the error that its owner makes", async () => {
  const frames = [frame("miss", 0, 1), frame("chunk", 1, 1), frame("end", 0, 0)];
  const { stream } = streamOfFrames(frames);
  const waiting = [0, 1, 2].map((stripe) => stream.take({ stripe, chunk: 1 }, NEVER));
  const [missed, came, behind] = await Promise.allSettled(waiting);
  expect(missed).toMatchObject({ reason: { code: "CHUNK_MISSING", message: "region r1 lacks 0:1" } });
  expect(came).toMatchObject({ value: new Uint8Array([1, 1]) });
  expect(behind).toMatchObject({ reason: { code: "CHUNK_MISSING", message: "region r1 lacks 2:1" } });
  expect((await rejectionOf(stream.take({ stripe: 3, chunk: 1 }, NEVER))).message).toBe("region r1 lacks 3:1");
});

test("a shard that is awaited already is there for no second request, and the first one gets it", async () => {
  const { stream } = streamOfFrames([frame("chunk", 0, 1)]);
  const [first, second] = await Promise.allSettled([1, 1].map((chunk) => stream.take({ stripe: 0, chunk }, NEVER)));
  expect(first).toMatchObject({ value: new Uint8Array([0, 1]) });
  expect(second).toMatchObject({ reason: { code: "CHUNK_MISSING" } });
});

test("progress counts frames", async () => {
  const { stream } = streamOfFrames([frame("chunk", 0, 1), frame("chunk", 0, 2)]);
  const waiting = stream.take({ stripe: 0, chunk: 2 }, NEVER);
  expect(stream.progress).toBe(0);
  await waiting;
  expect(stream.progress).toBe(2);
});

test("a failure rejects all requests, cancels the response, and leaves what came before it", async () => {
  const { stream, cancelled } = streamOfFrames([frame("chunk", 0, 1)]);
  const waiting = [2, 3].map((chunk) => rejectionOf(stream.take({ stripe: 0, chunk }, NEVER)));
  expect((await Promise.all(waiting)).map(({ code }) => code)).toEqual(["SOURCE_FAILED", "SOURCE_FAILED"]);
  expect(cancelled()).toBe(1);
  expect(await stream.take({ stripe: 0, chunk: 1 }, NEVER)).toEqual(new Uint8Array([0, 1]));
});

test("closing rejects with its error, drops what was kept and cancels the response", async () => {
  const { stream, cancelled } = streamOfFrames([frame("chunk", 0, 1), frame("chunk", 0, 2)]);
  await stream.take({ stripe: 0, chunk: 2 }, NEVER);
  stream.close(new AgaroseError("ABORTED", "closed by a test"));
  expect((await rejectionOf(stream.take({ stripe: 0, chunk: 1 }, NEVER))).message).toBe("closed by a test");
  expect(cancelled()).toBe(1);
});

test("a response that fails before anything was taken from it leaves no rejection that nobody handles", async () => {
  const stream = new ShardStream(
    Promise.reject(new TypeError("connection reset")),
    () => new AgaroseError("CHUNK_MISSING", ""),
  );
  // A run in which a rejection stays unhandled until here fails.
  await new Promise((resolve) => setTimeout(resolve));
  expect(await rejectionOf(stream.take({ stripe: 0, chunk: 0 }, NEVER))).toMatchObject({ code: "SOURCE_FAILED" });
});
