import { SimulatedClock } from "@agarose/core/testing";
import { describe, expect, test } from "vitest";
import { MemoryBudget } from "./memory-budget.ts";
import { pacedBody } from "./paced-body.ts";

function bodyOf(parts: readonly Uint8Array[], length?: number): ReadableStream<Uint8Array> {
  const left = [...parts];
  const clock = new SimulatedClock();
  const { signal } = new AbortController();
  const next = async (): Promise<Uint8Array | undefined> => left.shift();
  return pacedBody({ next, ...(length !== undefined && { length }), lease: undefined, signal, clock });
}

async function piecesOf(body: ReadableStream<Uint8Array>): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return pieces;
}

test("a part goes out in small pieces, which on Node are views of it", async () => {
  const part = new Uint8Array(300_000).fill(7);
  const pieces = await piecesOf(bodyOf([part], part.length));
  expect(pieces.map(({ length }) => length)).toEqual([131_072, 131_072, 37_856]);
  expect(pieces.every(({ buffer }) => buffer === part.buffer)).toBe(true);
});

describe("a body that states its length", () => {
  test.each([
    ["ends before it", [10, 9]],
    ["continues after it", [10, 11]],
    ["has nothing", []],
  ])("and %s errors", async (_name, lengths) => {
    const body = bodyOf(
      lengths.map((length) => new Uint8Array(length)),
      20,
    );
    const sent = lengths.reduce((sum, length) => sum + length, 0);
    await expect(piecesOf(body)).rejects.toMatchObject({ code: "INTERNAL", details: { sent, length: 20 } });
  });
});

describe("a client that leaves while a part is awaited", () => {
  const start = () => {
    const leaving = new AbortController();
    const ends: unknown[] = [];
    const arrival = Promise.withResolvers<Uint8Array>();
    const clock = new SimulatedClock();
    const next = (): Promise<Uint8Array> => arrival.promise;
    const onEnd = (error: unknown): void => void ends.push(error);
    const body = pacedBody({ next, length: 10, lease: undefined, signal: leaving.signal, clock, onEnd });
    const reader = body.getReader();
    return { leaving, ends, arrival, clock, reader, read: reader.read() };
  };

  test("by cancelling ends the body once, for its own reason", async () => {
    const { ends, arrival, clock, reader, read } = start();
    await reader.cancel("enough");
    arrival.resolve(new Uint8Array(10));
    expect(await read).toEqual({ done: true, value: undefined });
    expect([ends, clock.pendingTimers]).toEqual([["enough"], 0]);
  });

  test("by its signal errors the body, which never ends short", async () => {
    const { leaving, ends, arrival, clock, read } = start();
    leaving.abort("gone");
    arrival.resolve(new Uint8Array(5));
    await expect(read).rejects.toBe("gone");
    expect([ends, clock.pendingTimers]).toEqual([["gone"], 0]);
  });
});

test("a client that takes a piece every ten seconds loses its stream to a read that waits, and no other client does", async () => {
  const clock = new SimulatedClock();
  const memory = new MemoryBudget(clock, 100);
  const read = (version: string) => {
    const { signal } = new AbortController();
    const lease = memory.tryAcquire({ version, bytes: 40 })!;
    const next = async (): Promise<Uint8Array> => new Uint8Array(4_000_000);
    return pacedBody({ next, lease, signal, clock }).getReader();
  };
  const dripping = read("a");
  const steady = read("b");
  for (let second = 0; second < 40; second++) {
    await clock.advance(1_000);
    await steady.read();
    if (second % 9 === 0) await dripping.read();
  }
  expect(memory.expired).toBe(0);
  expect(memory.tryAcquire({ version: "c", bytes: 40 })).toBeDefined();
  await clock.advance(1_000);
  await expect(dripping.read()).rejects.toMatchObject({ code: "READ_TIMEOUT" });
  await expect(steady.read()).resolves.toMatchObject({ done: false });
});
