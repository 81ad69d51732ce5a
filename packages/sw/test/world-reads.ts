/** Reads of a `FakeWorld` on its virtual clock. */
import { expect } from "vitest";
import type { AgaroseError } from "@agarose/core";
import type { ReadResponse } from "../src/common/http-response.ts";
import type { ObjectClient } from "../src/client/object-client.ts";
import { FakeWorld, sampleBytes } from "./fake-world.ts";

export const KEY = "photos/cat.jpg";
/** Three stripes, the last one shorter. */
export const BYTES = sampleBytes(10_000);

export function request(
  headers: Record<string, string> = {},
  method: "GET" | "HEAD" = "GET",
  key = KEY,
  signal?: AbortSignal,
) {
  return { key, method, headers: new Headers(headers), signal };
}

/** A whole read on the virtual clock. */
export async function read(world: FakeWorld, client: ObjectClient, headers: Record<string, string> = {}, key = KEY) {
  const answer = await world.clock.settle(client.answer(request(headers, "GET", key)));
  return { ...answer, bytes: await bytesOf(world, answer) };
}

export async function bytesOf(world: FakeWorld, { body }: ReadResponse): Promise<Uint8Array> {
  return new Uint8Array(
    await world.clock.settle(new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer()),
  );
}

/** The code with which `promise` rejects. */
export async function failure(world: FakeWorld, promise: Promise<unknown>): Promise<AgaroseError> {
  return world.clock.settle(
    promise.then(
      () => expect.fail("the read succeeded"),
      (error: AgaroseError) => error,
    ),
  );
}

/** A world with BYTES at KEY, whose PoPs have been probed. */
export async function startWorld(): Promise<{ world: FakeWorld; client: ObjectClient }> {
  const world = new FakeWorld();
  world.put(KEY, BYTES);
  const client = world.client();
  await world.clock.settle(client.probe(true));
  return { world, client };
}
