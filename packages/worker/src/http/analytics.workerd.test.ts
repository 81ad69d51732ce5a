import { fileURLToPath } from "node:url";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startBuckets, type BucketServer } from "../../test/bucket-server.ts";
import { putObject, randomBytes, REGIONS } from "../../test/objects.ts";
import type { DataPoint } from "./analytics.ts";

const ENTRY = fileURLToPath(new URL("../../test/analytics.worker.ts", import.meta.url));

let buckets: BucketServer;
let pops: Pops;
beforeAll(async () => {
  buckets = await startBuckets();
  const regions = REGIONS.map((name) => ({ name, url: `${buckets.url}/${name}` }));
  const vars = { REGIONS: JSON.stringify(regions), UNSIGNED: "true" };
  pops = await startPops({ pops: [{ name: "fra", vars }], entry: ENTRY });
});
afterAll(async () => {
  await pops.dispose();
  await buckets.close();
});

test("each answer is a data point without its key, and a refused point costs no answer", async () => {
  const content = randomBytes(3_000);
  await putObject(buckets, "members/cat", content);
  const { url } = pops.pops[0]!;
  const read = await fetch(`${url}/o/members/cat`);
  expect(new Uint8Array(await read.arrayBuffer())).toEqual(content);
  const missing = await fetch(`${url}/o/members/dog`);
  expect(missing.status).toBe(404);
  await missing.arrayBuffer();
  await (await fetch(`${url}/healthz`)).arrayBuffer();
  const points = (await (await fetch(`${url}/__points`)).json()) as DataPoint[];
  expect(points.map(({ indexes }) => indexes)).toEqual([["fra"], ["fra"], ["fra"]]);
  expect(points.map(({ blobs }) => blobs.slice(0, 4))).toEqual([
    ["/o/", "200", "", "origin"],
    ["/o/", "404", "OBJECT_NOT_FOUND", ""],
    ["/healthz", "200", "", ""],
  ]);
  expect(points[0]!.doubles).toEqual([3_000]);
  expect(JSON.stringify(points)).not.toContain("members");
});
