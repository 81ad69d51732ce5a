/** `agarose adopt` as a program, with a bucket of plain objects beside six regions. */
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openOrigin } from "@agarose/storage/buckets/stores";
import type { S3Store } from "@agarose/storage/buckets/s3-store";
import { parseConfig } from "@agarose/storage/config/config";
import { startS3Endpoint, type S3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { CREDENTIALS, startTestWorld, type World } from "../../../test/world.ts";

let world: World;
let endpoint: S3Endpoint;
let origin: S3Store;

const OBJECTS = 16;
const BYTES = Buffer.alloc(4_000, "plain");

beforeAll(async () => {
  world = await startTestWorld();
  endpoint = await startS3Endpoint({ ...CREDENTIALS, buckets: ["plain"] });
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  const text = JSON.stringify({ ...json, origin: { endpoint: endpoint.url, bucket: "plain" } });
  await writeFile(world.configPath, text);
  origin = openOrigin(parseConfig(text, "test"), { credentials: CREDENTIALS })!;
  for (let at = 0; at < OBJECTS; at++) {
    await origin.put(`photos/${at}`, BYTES, { bytes: BYTES.length, contentType: "image/png" });
  }
});

afterAll(async () => {
  origin.close();
  await endpoint.close();
  await world.close();
});

test("a run that is killed leaves whole objects, and the next one stores the rest", async () => {
  const cursor = `${world.dir}/adopt.cursor`;
  let stored = 0;
  let kill = (): void => {};
  const killWhen = new Promise<void>((resolve) => (kill = resolve));
  const args = ["adopt", "photos/", "--cursor", cursor, "--json-lines", "--rate", "40kB/s"];
  const killed = await world.spawn(args, {
    killWhen,
    killSignal: "SIGKILL",
    onStdout: (part) => {
      stored += part.toString().split("\n").length - 1;
      if (stored >= 5) kill();
    },
  });
  expect(killed.code, "the kill came in time").not.toBe(0);
  const status = await world.run(["adopt", "--status", "--json"]);
  const { listed, adopted, failed, objects } = JSON.parse(status.stdout.toString()) as Record<string, number>;
  expect({ listed, failed, objects }).toEqual({ listed: OBJECTS, failed: 0, objects: [] });
  expect(adopted, "left").toBeLessThanOrEqual(OBJECTS - 5);
  expect(adopted).toBeGreaterThan(0);
  // A key that the killed run had claimed fails, and is not said to be there.
  const rest = await world.run(["adopt", "photos/", "--cursor", cursor]);
  const failures = rest.stdout.toString().match(/^failed .*$/gm) ?? [];
  expect(rest.code).toBe(failures.length > 0 ? 1 : 0);
  for (const line of failures) expect(line).toContain("BUSY");
  // As if the 40 seconds had passed after which the claim of a killed command is passed over.
  for (const store of world.stores) {
    const claims: string[] = [];
    for await (const { name } of store.list("claims/")) claims.push(name);
    await store.remove(claims);
  }
  const last = await world.run(["adopt", "photos/"]);
  expect([last.code, last.stdout.toString()]).toEqual([
    0,
    expect.stringMatching(/16 objects at the origin \(62\.5 KiB\), \d+ adopted .*, 0 newer at the origin, 0 failed\n$/),
  ]);
  const done = await world.run(["adopt", "--status"]);
  expect(done.stdout.toString()).toContain("16 objects at the origin (62.5 KiB), 0 to be adopted (0 B)");
  for (let at = 0; at < OBJECTS; at++) expect((await world.get(`photos/${at}`)).equals(BYTES)).toBe(true);
  expect((await world.run(["verify"])).code).toBe(0);
});

test("`release` writes back what has changed, and the second time nothing", async () => {
  await world.put("photos/0", Buffer.from("newer"));
  const due = await world.run(["release", "photos/", "--dry-run", "--json"]);
  expect(JSON.parse(due.stdout.toString())).toMatchObject({
    objects: [{ key: "photos/0", outcome: "due", bytes: 5 }],
    released: 1,
    equal: OBJECTS - 1,
  });
  const cursor = `${world.dir}/release.cursor`;
  expect((await world.run(["release", "photos/", "--cursor", cursor])).code).toBe(0);
  const { stdout } = await world.run(["release", "photos/"]);
  expect(stdout.toString()).toBe(
    "0 released (0 B), 16 equal, 0 newer in the bucket, 0 extra in the bucket, 0 failed\n",
  );
  expect((await origin.look("photos/0"))?.bytes).toBe(5);
  expect((await world.run(["release", "--bucket", "nowhere"])).code).toBe(1);
});

test("one object that cannot be read makes it exit with 1, and the others are stored", async () => {
  const bytes = Buffer.from("plain");
  await origin.put(`bad/${"x".repeat(970)}`, bytes, { bytes: bytes.length, contentType: "text/plain" });
  await origin.put("good", bytes, { bytes: bytes.length, contentType: "text/plain" });
  const { code, stdout } = await world.run(["adopt"]);
  expect([code, stdout.toString()]).toEqual([
    1,
    expect.stringMatching(/failed +bad\/x+ +KEY_TOO_LONG[^]*adopted +good/),
  ]);
});
