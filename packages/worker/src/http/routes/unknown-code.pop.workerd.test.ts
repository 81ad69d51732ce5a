/** Objects that this program cannot decode: each route says so, and nothing of them is cached. */
import { FrameReader } from "@agarose/core/sources";
import { afterAll, beforeAll, expect, test } from "vitest";
import { POP, randomBytes, startWorld, type TestWorld } from "../../../test/world.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
  await world.put("known", randomBytes(1_000));
});
afterAll(() => world.close());

async function errorOf(path: string): Promise<unknown> {
  const response = await fetch(`${world.url}${path}`);
  const { error } = (await response.json()) as { error: { code: string } };
  return [response.status, error.code, response.headers.get("cache-control")];
}

/** The keys that a batch has plans of. */
async function plannedKeys(...keys: string[]): Promise<string[]> {
  const response = await fetch(`${world.url}/v1/plans?${new URLSearchParams(keys.map((key) => ["key", key]))}`);
  const reader = new FrameReader(response.body!);
  const planned: string[] = [];
  for (let frame = await reader.next(); frame.type !== "end"; frame = await reader.next()) {
    planned.push(keys[frame.stripe]!);
  }
  return planned;
}

test.each([
  ["of a newer format", "MANIFEST_NEWER", (manifest: object) => ({ ...manifest, agarose: 3 })],
  ["with an unknown feature", "MANIFEST_NEWER", (manifest: object) => ({ ...manifest, requires: ["teleport"] })],
  [
    "of more chunks than the field has elements",
    "CODE_INVALID",
    (manifest: object) => ({ ...manifest, k: 200, m: 99 }),
  ],
])("an object %s is refused by every route as %s, and not cached", async (name, code, edit) => {
  const key = encodeURIComponent(name);
  await world.put(name, randomBytes(1_000), { edit });
  for (let i = 0; i < 5; i++) expect(await errorOf(`/o/${key}`)).toEqual([502, code, "no-store"]);
  expect(await errorOf(`/v1/read/${key}`)).toEqual([502, code, "no-store"]);
  expect(await plannedKeys("known", name)).toEqual(["known"]);
  await fetch(`${world.url}/o/known`);
  await world.pops.cron(POP);
  const { cache, lastPeriod } = await world.status();
  expect(lastPeriod.errors).toEqual([]);
  expect(cache.objects.map((object) => object.key)).not.toContain(name);
  const chunks = world.buckets.requests.filter((request) => request.name.startsWith(`chunks/${name}!`));
  expect(chunks, "no chunk was asked for").toEqual([]);
  // The object is read once its manifest is one that this program knows.
  const content = randomBytes(1_000, 9);
  await world.put(name, content);
  const response = await fetch(`${world.url}/o/${key}`);
  expect([response.status, Buffer.compare(Buffer.from(await response.arrayBuffer()), Buffer.from(content))]).toEqual([
    200, 0,
  ]);
});
