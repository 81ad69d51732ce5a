/** Walks that read inventories, as AWS writes them, in place of listing the buckets of an S3 server. */
import { createHash, randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { chunkNameOf, manifestName, type Manifest } from "@agarose/core/format";
import type { S3Endpoint, startS3Endpoint, startVersitygw } from "@agarose/dev-world/s3-endpoint";
import { allOf } from "./three-regions.ts";
import type { ListedObject } from "../src/buckets/store.ts";
import { openBucketBeside } from "../src/buckets/stores.ts";
import { configOfFields } from "../src/config/config.ts";
import { Deployment } from "../src/deployment.ts";
import { repairObjects, type RepairOptions } from "../src/maintenance/repair-objects.ts";
import { verifyObjects, type VerifyOptions } from "../src/maintenance/verify-objects.ts";
import { readRecord } from "../src/objects/manifests.ts";
import type { ObjectVerdict } from "../src/objects/verify-object.ts";
import { closeParts, openParts, type DeploymentParts } from "../src/parts.ts";
import type { RepairOutcome } from "../src/repair/repair-outcome.ts";
import { inventoriesOf } from "../src/listing/inventory.ts";
import { KeyListing } from "../src/listing/keys.ts";

const KEYS = { accessKeyId: "inventory", secretAccessKey: "inventory-secret" };
const ENV = { accessKeyId: "INVENTORY_TEST_KEY", secretAccessKey: "INVENTORY_TEST_SECRET" };
const REGIONS = ["frankfurt", "dublin", "tokyo"] as const;
const REPORTS = "reports";
const SCHEMA = "Bucket, Key, Size, LastModifiedDate, ETag";
const DAY_MS = 86_400_000;
const ODD = 'odd/a b+c%20ü,"quoted"';

/** The parts of an inventory that are wrong. */
interface Wrong {
  readonly manifest?: object;
  readonly rowOf?: (row: readonly string[]) => readonly string[];
  readonly keeps?: (name: string) => boolean;
  readonly data?: (bytes: Buffer) => Buffer;
  readonly md5?: string;
  readonly isDataMissing?: boolean;
}

export function inventoryContract(startServer: typeof startS3Endpoint | typeof startVersitygw): void {
  let server: Pick<S3Endpoint, "url" | "close">;
  let parts: DeploymentParts;
  let store: Deployment;
  let lists = 0;
  let warnings: string[] = [];

  beforeAll(async () => {
    [process.env[ENV.accessKeyId], process.env[ENV.secretAccessKey]] = [KEYS.accessKeyId, KEYS.secretAccessKey];
    server = await startServer({ ...KEYS, buckets: [...REGIONS, REPORTS] });
    const regions = REGIONS.map((name) => ({ name, provider: name, endpoint: server.url, bucket: name }));
    const safe = { survive: { regions: 1, providers: 1 }, credentials: { env: ENV }, unsigned: true };
    const config = configOfFields({ regions, code: { k: 2, m: 1 }, ...safe }, "test");
    parts = openParts(config, { attempts: 3 }, new AbortController().signal);
    for (const region of parts.stores) {
      const list = region.list.bind(region);
      region.list = (...args) => (lists++, list(...args));
    }
    store = new Deployment(parts);
    for (let at = 0; at < 24; at++) await store.put(`photos/${at}`, randomBytes(20_000));
    await store.put(ODD, randomBytes(20_000));
    await store.put("gone", "soon");
    await store.remove("gone");
  });
  beforeEach(() => {
    [lists, warnings] = [0, []];
  });
  afterAll(async () => {
    closeParts(parts);
    await server.close();
  });

  /** Writes what a region lists now in two files that share rows, without an order, and with rows of other programs. */
  async function writeInventory(region: string, wrong: Wrong = {}, date = "2026-11-06T21-32Z"): Promise<void> {
    const source = parts.stores.find((one) => one.region.name === region)!;
    const reports = openBucketBeside(source.region, REPORTS, parts.config);
    const { rowOf = (row) => row, keeps = () => true, data = (bytes) => bytes } = wrong;
    const others = Array.from({ length: 2_000 }, (_, at) => ({
      name: `other program/${at} ü`,
      bytes: at,
      modifiedMs: 0,
    }));
    const rows = [...(await allOf(source.list(""))), ...others]
      .filter(({ name }) => keeps(name))
      .map(rowFor(region))
      .map(rowOf);
    const text = (some: readonly (readonly string[])[]): string =>
      some.map((row) => `${row.map((field) => `"${field.replaceAll('"', '""')}"`).join(",")}\n`).join("");
    const files = [];
    for (const [at, some] of [rows.slice(0, 60), rows.slice(40)].entries()) {
      const bytes = data(gzipSync(text(some.toReversed())));
      const key = `daily/${region}/all/data/${date}-${at}.csv.gz`;
      const isMissing = at === 1 && wrong.isDataMissing === true;
      if (!isMissing) await reports.put(key, bytes, { bytes: bytes.length, contentType: "application/gzip" });
      else await reports.remove([key]);
      const md5 = createHash("md5").update(bytes).digest("hex");
      files.push({ key, size: bytes.length, MD5checksum: wrong.md5 ?? md5 });
    }
    const about = { sourceBucket: region, destinationBucket: `arn:aws:s3:::${REPORTS}`, version: "2016-11-30" };
    const of = { creationTimestamp: String(Date.now() - DAY_MS), fileFormat: "CSV", fileSchema: SCHEMA, files };
    const bytes = Buffer.from(JSON.stringify({ ...about, ...of, ...wrong.manifest }));
    const type = { bytes: bytes.length, contentType: "application/json" };
    await reports.put(`daily/${region}/all/${date}/manifest.json`, bytes, type);
    reports.close();
  }

  const byInventory = (regions: readonly string[] = REGIONS): DeploymentParts => {
    const places = regions.map((region) => ({ region, bucket: REPORTS, path: `daily/${region}/all` }));
    return { ...parts, inventories: inventoriesOf(places, parts, (line) => void warnings.push(line)) };
  };
  const verified = async (context: DeploymentParts, options: Partial<VerifyOptions> = {}) => {
    const verdicts: ObjectVerdict[] = [];
    const totals = await verifyObjects({ onVerdict: async (one) => void verdicts.push(one), ...options }, context);
    return { verdicts, totals };
  };
  const repaired = async (context: DeploymentParts, options: Partial<RepairOptions> = {}) => {
    const outcomes: RepairOutcome[] = [];
    await repairObjects({ onOutcome: async (one) => void outcomes.push(one), ...options }, context);
    return outcomes;
  };
  const keysOf = (found: readonly { readonly key: string }[]): string[] => found.map(({ key }) => key);
  const writeAll = (wrong: Wrong = {}) => Promise.all(REGIONS.map((region) => writeInventory(region, wrong)));

  test.each([true, false])("a verify finds what it finds by listings, in the same order (quick: %s)", async (quick) => {
    await writeAll();
    const listed = await verified(parts, { quick });
    lists = 0;
    const read = await verified(byInventory(), { quick });
    expect(read).toEqual(listed);
    expect(keysOf(read.verdicts)).toContain(ODD);
    expect(read.totals).toMatchObject({ objects: 25, unsound: 0 });
    expect(lists).toBe(0);
    expect(warnings).toHaveLength(3);
    expect(warnings.toSorted()[1]).toMatch(/^warning: frankfurt is not listed: its inventory of \d{4}-\d\d-\d\dT/);
  });

  test("shards and prefixes share an inventory as they share listings", async () => {
    await writeAll();
    const all: string[] = [];
    for (const index of [1, 2, 3]) {
      const shard = { index, count: 3 };
      const keys = keysOf((await verified({ ...byInventory(), shard }, { quick: true })).verdicts);
      expect(keys).toEqual(keysOf((await verified({ ...parts, shard }, { quick: true })).verdicts));
      expect(keys.length).toBeGreaterThan(0);
      all.push(...keys);
    }
    expect(all.toSorted()).toEqual(keysOf((await verified(parts, { quick: true })).verdicts).toSorted());
    const some = keysOf((await verified(byInventory(), { quick: true, prefix: "photos/1" })).verdicts);
    expect(some).toEqual(keysOf((await verified(parts, { quick: true, prefix: "photos/1" })).verdicts));
  });

  test("the newest inventory counts, older versions of a name and delete markers do not", async () => {
    const isGone = (name = "") => decodeURIComponent(name).includes("/photos/3!");
    const versioned: Wrong = {
      manifest: { fileSchema: `${SCHEMA}, VersionId, IsLatest, IsDeleteMarker` },
      rowOf: (row) => [...row, "v", "true", String(isGone(row[1]))],
    };
    await Promise.all(
      REGIONS.map((region) => writeInventory(region, { manifest: { files: [] } }, "2026-11-05T21-32Z")),
    );
    await writeAll(versioned);
    expect(keysOf((await verified(byInventory(), { quick: true })).verdicts)).not.toContain("photos/3");
    await writeAll({ ...versioned, rowOf: (row) => [...row, "v", String(!isGone(row[1])), "false"] });
    expect(keysOf((await verified(byInventory(), { quick: true })).verdicts)).not.toContain("photos/3");
  });

  test("what changed since an inventory is looked at as it is now", async () => {
    await store.put("aged/removed", randomBytes(20_000));
    await store.put("aged/changed", randomBytes(20_000));
    await store.put("aged/damaged", randomBytes(20_000));
    await store.put("aged/lost", randomBytes(20_000));
    await store.put("aged/forgotten", "x");
    await store.remove("aged/forgotten");
    await writeAll();
    await store.put("aged/new", randomBytes(20_000));
    await store.put("aged/changed", randomBytes(30_000));
    await store.remove("aged/removed");
    const { record } = await readRecord("aged/damaged", parts);
    const manifest = record as Manifest;
    const holder = parts.stores.find(({ region }) => region.name === manifest.placement[0])!;
    expect(await holder.head(chunkNameOf(manifest, 0))).toBeGreaterThan(0);
    await holder.remove([chunkNameOf(manifest, 0)]);
    for (const region of parts.stores) await region.remove([manifestName("aged/lost"), manifestName("aged/forgotten")]);

    for (const quick of [false, true]) {
      const { verdicts } = await verified(byInventory(), { prefix: "aged/", quick });
      const states = Object.fromEntries(verdicts.map(({ key, sound, readable }) => [key, { sound, readable }]));
      // A quick look trusts the inventory where all of it fits.
      const [old, sound] = [
        { sound: quick, readable: true },
        { sound: true, readable: true },
      ];
      expect(states).toEqual({
        "aged/changed": sound,
        "aged/damaged": old,
        "aged/lost": quick ? sound : { sound: false, readable: false },
        ...(quick && { "aged/removed": sound }),
      });
    }
    const listed = keysOf((await verified(byInventory(["tokyo"]), { prefix: "aged/" })).verdicts);
    expect(listed, "the regions that are listed have it").toContain("aged/new");

    const before = await allOf(store.list("aged/"));
    const outcomes = await repaired(byInventory(), { prefix: "aged/" });
    expect(Object.fromEntries(outcomes.map(({ key, outcome }) => [key, outcome]))).toEqual({
      "aged/changed": "sound",
      "aged/damaged": "repaired",
      "aged/lost": "damaged",
      "aged/removed": "sound",
    });
    expect(keysOf(await allOf(store.list("aged/"))), "a repair brings nothing back").toEqual(keysOf(before));
    expect(await holder.head(chunkNameOf(manifest, 0))).toBeGreaterThan(0);
  });

  test.each<[string, RegExp, Wrong]>([
    [
      "a file that is missing",
      /names daily\/dublin\/all\/data\/\S*-1\.csv\.gz, for which the bucket answers 404/,
      { isDataMissing: true },
    ],
    ["another checksum", /with the MD5 [\da-f]{32}, and 0{32} is that of its manifest/, { md5: "0".repeat(32) }],
    ["a file that is cut off", /cannot be read: unexpected end of file/, { data: (bytes) => bytes.subarray(0, -20) }],
    ["a file that is not gzipped", /cannot be read: incorrect header check/, { data: () => Buffer.from("Bucket,Key") }],
    ["rows with fewer columns", /cannot be read: Invalid Record Length/, { rowOf: (row) => row.slice(1) }],
    [
      "rows in another order",
      /is none of its schema/,
      { manifest: { fileSchema: "Bucket, Key, LastModifiedDate, Size, ETag" } },
    ],
    [
      "names that are not URL-encoded",
      /is none of its schema/,
      { rowOf: ([bucket = "", , ...row]) => [bucket, "100%", ...row] },
    ],
    [
      "dates that there are not",
      /is none of its schema/,
      {
        rowOf: ([bucket = "", name = "", size = "", , etag = ""]) => [bucket, name, size, "2026-02-32T01:02:03Z", etag],
      },
    ],
    ["a date that there is not", /has no manifest in daily/, { manifest: { creationTimestamp: "9".repeat(17) } }],
    ["rows of another bucket", /has a row of the bucket paris/, { rowOf: ([, ...row]) => ["paris", ...row] }],
    [
      "columns that are missing",
      /lacks Size, ETag: choose/,
      { manifest: { fileSchema: "Bucket, Key, LastModifiedDate" } },
    ],
    ["another bucket", /is of the bucket paris, not of dublin/, { manifest: { sourceBucket: "paris" } }],
    ["another format", /has files of the format Parquet: choose CSV/, { manifest: { fileFormat: "Parquet" } }],
    [
      "a part of the bucket",
      /lacks control\/deployment.json: it must be of the whole bucket/,
      { keeps: (name) => name.startsWith("manifests/") },
    ],
    [
      "a month of age",
      /31 days ago: at most 30/,
      { manifest: { creationTimestamp: String(Date.now() - 31 * DAY_MS) } },
    ],
    ["no manifest of an inventory", /has no manifest in daily/, { manifest: { files: "none" } }],
  ])("an inventory with %s ends the walk before it looks at an object", async (_, message, wrong) => {
    await writeAll();
    await writeInventory("dublin", wrong);
    const verdicts: ObjectVerdict[] = [];
    const walk = verifyObjects({ onVerdict: async (one) => void verdicts.push(one) }, byInventory());
    await expect(walk).rejects.toMatchObject({ code: "INVENTORY_INVALID", message: expect.stringMatching(message) });
    expect(verdicts).toEqual([]);
    expect(parts.breaker.isOpen("dublin")).toBe(false);
  });

  test("an inventory that is nowhere, or of no region, is refused, and so is one beside keys", async () => {
    const place = { region: "dublin", bucket: REPORTS, path: "none" };
    const inventories = inventoriesOf([place], parts, () => {});
    await expect(verified({ ...parts, inventories })).rejects.toMatchObject({ code: "INVENTORY_INVALID" });
    const noBucket = inventoriesOf([{ ...place, bucket: "absent-bucket" }], parts, () => {});
    await expect(verified({ ...parts, inventories: noBucket })).rejects.toMatchObject({ code: "SOURCE_FAILED" });
    await expect(verified({ ...parts, inventories }, { keys: ["a"] })).rejects.toMatchObject({ code: "USAGE" });
    expect(() => inventoriesOf([place, place], parts, () => {})).toThrow(expect.objectContaining({ code: "USAGE" }));
    const unknown = [{ ...place, region: "paris" }];
    expect(() => inventoriesOf(unknown, parts, () => {})).toThrow(expect.objectContaining({ code: "REGION_UNKNOWN" }));
  });

  test("a walk that is left ends the programs that order names", async () => {
    await writeAll();
    const running = (): number => process.getActiveResourcesInfo().filter((one) => one === "ProcessWrap").length;
    const before = running();
    for await (const { key } of new KeyListing("", byInventory()).groups()) {
      expect(key).toBeDefined();
      break;
    }
    await expect.poll(running).toBe(before);
  });
}

/** A row as AWS writes it. */
function rowFor(region: string): (object: ListedObject) => readonly string[] {
  return ({ name, bytes, modifiedMs, etag = "" }) => [
    region,
    encodeURIComponent(name),
    String(bytes),
    new Date(modifiedMs).toISOString(),
    etag.replaceAll('"', ""),
  ];
}
