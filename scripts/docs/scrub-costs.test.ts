/** The requests of a scrub at an S3 endpoint that counts: docs/reference/request-costs.md computes with them. */
import { startS3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { openDeployment } from "@agarose/storage";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ASSUMED, SCRUB } from "../../packages/worker/scripts/operating-costs.ts";

const OBJECTS = 5;
const REGIONS = Array.from({ length: ASSUMED.regions }, (_, i) => `region-${i}`);
const KEYS = { accessKeyId: "costs", secretAccessKey: "costs-secret" };
const { k, m } = ASSUMED;

test.each([
  ["auto", SCRUB.manifestGets],
  [{ k, m }, 0],
])("a scrub of whole objects with code %j lists them, and GETs %i of each", async (code, gets) => {
  const requests: string[] = [];
  const endpoint = await startS3Endpoint({
    ...KEYS,
    buckets: REGIONS,
    async intercept({ method, url }) {
      requests.push(`${method} ${url}`);
      return false;
    },
  });
  const folder = await mkdtemp(join(tmpdir(), "agarose-costs-"));
  const credentialsFile = join(folder, "credentials");
  const { accessKeyId, secretAccessKey } = KEYS;
  await writeFile(
    credentialsFile,
    `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`,
  );
  const store = await openDeployment({
    regions: REGIONS.map((name) => ({ name, provider: name, endpoint: endpoint.url, bucket: name })),
    code,
    credentials: { credentialsFile, profile: "default" },
    unsigned: true,
  });
  try {
    for (let i = 0; i < OBJECTS; i++) await store.put(`object-${i}`, new Uint8Array(ASSUMED.objectBytes).fill(i));
    const stored = requests.filter((request) => /^PUT .*\/chunks\//.test(request));
    if (code !== "auto") expect(stored.length, "chunks alone").toBe(OBJECTS * (k + m));
    requests.length = 0;
    for await (const outcome of store.scrub()) expect(outcome, "nothing to repair").toBeUndefined();
    const lists = requests.filter((request) => request.includes("list-type=2"));
    const others = requests.filter((request) => !lists.includes(request));
    expect(others.filter((request) => request.startsWith("GET ")).length, others.join("\n")).toBe(OBJECTS * gets);
    // One listing of manifests and one of chunks, beside those of what is seldom there.
    expect(lists.length).toBeGreaterThanOrEqual(2 * REGIONS.length);
    expect(lists.filter((list) => /prefix=(manifests|chunks)%2F/.test(list)).length).toBe(2 * REGIONS.length);
  } finally {
    store.close();
    await endpoint.close();
    await rm(folder, { recursive: true });
  }
});
