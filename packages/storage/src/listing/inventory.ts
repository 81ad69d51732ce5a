/**
 * S3 Inventory in place of listings: files in which AWS writes down, once a day or a week, what a bucket holds.
 *
 * An inventory is old, so it says where to look and never what to remove. A walk by it looks at each object anew before
 * it writes, and does not see what was stored since.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { pipeline as connect, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { parse } from "csv-parse";
import * as v from "valibot";
import { AgaroseError } from "@agarose/core";
import { recordText } from "../buckets/small-record.ts";
import type { ListedObject, Store } from "../buckets/store.ts";
import { openBucketBeside } from "../buckets/stores.ts";
import { CONTROL_NAME } from "../commit/control-record.ts";
import type { WriteContext } from "../commit/write-context.ts";
import { isInShard } from "./shard.ts";
import { jsonIn } from "../config/json.ts";

/** Where the inventories of a region are. */
export interface InventoryPlace {
  readonly region: string;
  /** The bucket to which AWS writes them, at the endpoint of the region. */
  readonly bucket: string;
  /** The folder of an inventory, whose newest counts, or the `manifest.json` of one. */
  readonly path: string;
}

/** A tombstone stays as long at least, so a key that is gone without one was lost. */
const AGE_MS_MAX = 30 * 24 * 3_600_000;
/** The last moment of a `Date`. */
const DATE_MS_MAX = 8.64e15;
/** A manifest names a file for about a million objects. */
const MANIFEST_BYTES_MAX = 64 * 1024 * 1024;
/** The characters of key names. Other programs may have other names. */
const OWN_NAME = /^[\x21-\x7e]+$/;

const MANIFEST = v.object({
  sourceBucket: v.string(),
  creationTimestamp: v.pipe(v.string(), v.digits(), v.transform(Number), v.maxValue(DATE_MS_MAX)),
  fileFormat: v.string(),
  fileSchema: v.string(),
  files: v.array(v.object({ key: v.string(), MD5checksum: v.string() })),
});

const ROW = v.object({
  Bucket: v.string(),
  Key: v.pipe(
    v.string(),
    v.rawTransform(({ dataset, addIssue, NEVER }) => {
      try {
        return decodeURIComponent(dataset.value);
      } catch {
        addIssue();
        return NEVER;
      }
    }),
  ),
  Size: v.pipe(v.string(), v.digits()),
  LastModifiedDate: v.pipe(
    v.string(),
    v.isoTimestamp(),
    v.transform((text) => new Date(text).toISOString()),
  ),
  ETag: v.pipe(v.string(), v.regex(/^\S*$/)),
});

/** The facts of a manifest. */
interface Opened {
  readonly columns: string[];
  readonly data: v.InferOutput<typeof MANIFEST>["files"];
}

/** The newest inventory of a region, which is read once something is listed. */
function inventoryIn(
  place: InventoryPlace,
  store: Store,
  context: WriteContext,
  onWarning: (line: string) => void,
): Pick<Store, "list"> {
  let opened: Promise<Opened> | undefined;
  return { list };

  /**
   * As `Store.list`, without what other programs or other shards have. It reads all files before the first object, and
   * has the program `sort` put the names in order, which AWS does not promise.
   *
   * @throws INVENTORY_INVALID, CREDENTIALS_REFUSED or SOURCE_FAILED, and DISK_FULL where the names cannot be sorted.
   */
  async function* list(prefix: string, signal: AbortSignal, after = ""): AsyncGenerator<ListedObject> {
    let last: ListedObject | undefined;
    for await (const line of sorted(linesBelow(prefix, after, signal), signal)) {
      const [name, modified, bytes, etag] = line.split("\t") as [string, string, string, string];
      // Of rows with one name, the youngest comes last.
      if (last && last.name !== name) yield last;
      last = { name, bytes: Number(bytes), modifiedMs: Date.parse(modified), ...(etag && { etag: `"${etag}"` }) };
    }
    if (last) yield last;
  }

  async function* linesBelow(prefix: string, after: string, signal: AbortSignal): AsyncGenerator<string> {
    const { shard, config } = context;
    const { bucket } = store.region;
    const files = openBucketBeside(store.region, place.bucket, config);
    try {
      const { columns, data } = await (opened ??= open(files, signal));
      let isWhole = false;
      for (const file of data) {
        for await (const row of rowsOf(file, columns, files, signal)) {
          const { IsLatest = "true", IsDeleteMarker = "false" } = row;
          if (IsLatest !== "true" || IsDeleteMarker !== "false") continue;
          const { success, output: read } = v.safeParse(ROW, row);
          if (!success) throw invalid(`has a row in ${file.key} that is none of its schema: ${JSON.stringify(row)}`);
          if (read.Bucket !== bucket) throw invalid(`has a row of the bucket ${read.Bucket} in ${file.key}`);
          const { Key: name } = read;
          isWhole ||= name === CONTROL_NAME;
          if (!name.startsWith(prefix) || name <= after || !OWN_NAME.test(name)) continue;
          const group = name.slice(name.indexOf("/") + 1, name.indexOf("!") + 1);
          if (shard && !isInShard(group, shard)) continue;
          yield `${name}\t${read.LastModifiedDate}\t${read.Size}\t${read.ETag}\n`;
        }
      }
      // A filter has one prefix, and this name shares none with those of objects.
      if (!isWhole) throw invalid(`lacks ${CONTROL_NAME}: it must be of the whole bucket, without a prefix`);
    } finally {
      files.close();
    }
  }

  /** Reads the manifest, and says how old it is. */
  async function open(files: Store, signal: AbortSignal): Promise<Opened> {
    const { path } = place;
    const { nowMs } = context;
    const name = path.endsWith(".json") ? path : await newestManifest(files, path, signal);
    if (name === undefined) throw invalid("has no manifest.json: AWS writes the first one within two days");
    const read = v.safeParse(MANIFEST, jsonIn(await recordText(files, name, "inventory", signal, MANIFEST_BYTES_MAX)));
    if (!read.success) throw invalid(`has no manifest in ${name}: ${read.issues[0].message}`);
    const { sourceBucket, creationTimestamp, fileFormat, fileSchema, files: data } = read.output;
    const { bucket, name: region } = store.region;
    if (sourceBucket !== bucket) throw invalid(`is of the bucket ${sourceBucket}, not of ${bucket}`);
    if (fileFormat !== "CSV") throw invalid(`has files of the format ${fileFormat}: choose CSV for it`);
    const columns = fileSchema.split(/\s*,\s*/);
    const missing = Object.keys(ROW.entries).filter((column) => !columns.includes(column));
    if (missing.length > 0) throw invalid(`lacks ${missing.join(", ")}: choose the size, date and ETag for it`);
    const date = new Date(creationTimestamp).toISOString();
    const days = (nowMs() - creationTimestamp) / (24 * 3_600_000);
    if (nowMs() - creationTimestamp > AGE_MS_MAX)
      throw invalid(`is of ${date}, ${days.toFixed()} days ago: at most 30 are allowed`);
    onWarning(`warning: ${region} is not listed: its inventory of ${date} does not have what was stored since`);
    return { columns, data };
  }

  async function* rowsOf(
    { key, MD5checksum: expected }: Opened["data"][number],
    columns: string[],
    files: Store,
    signal: AbortSignal,
  ): AsyncGenerator<Readonly<Record<string, string>>> {
    const { status, body } = await files.get(key, { signal });
    if (status !== 200 || !body) throw invalid(`names ${key}, for which the bucket answers ${status}`);
    const md5 = createHash("md5");
    const parts = async function* (): AsyncGenerator<Uint8Array> {
      for await (const part of body) {
        md5.update(part);
        yield part;
      }
    };
    try {
      yield* connect(parts, createGunzip(), parse({ columns }), () => {}) as AsyncIterable<Record<string, string>>;
    } catch (error) {
      signal.throwIfAborted();
      throw invalid(`has ${key}, which cannot be read: ${(error as Error).message}`, error);
    }
    const actual = md5.digest("hex");
    if (actual !== expected)
      throw invalid(`has ${key} with the MD5 ${actual}, and ${expected} is that of its manifest`);
  }

  function invalid(problem: string, cause?: unknown): AgaroseError {
    const { region, bucket, path } = place;
    const message = `the inventory of ${region} in s3://${bucket}/${path} ${problem}`;
    return new AgaroseError("INVENTORY_INVALID", message, { region, bucket, path }, cause);
  }
}

/** The inventories of regions. Throws REGION_UNKNOWN, and USAGE where a region has two. */
export function inventoriesOf(
  places: readonly InventoryPlace[],
  context: WriteContext,
  onWarning: (line: string) => void,
): ReadonlyMap<Store, Pick<Store, "list">> {
  const inventories = new Map<Store, Pick<Store, "list">>();
  for (const place of places) {
    const { region } = place;
    const store = context.stores.find((one) => one.region.name === region);
    if (!store) throw new AgaroseError("REGION_UNKNOWN", `region ${region} is not configured`, { region });
    if (inventories.has(store))
      throw new AgaroseError("USAGE", `region ${region} has two inventories: give one`, { region });
    inventories.set(store, inventoryIn(place, store, context, onWarning));
  }
  return inventories;
}

/** The folder of each inventory is named by its date, and other folders are not. */
async function newestManifest(files: Store, path: string, signal: AbortSignal): Promise<string | undefined> {
  let newest: string | undefined;
  for await (const { name } of files.list(`${path.replace(/\/*$/, "/")}2`, signal))
    if (name.endsWith("Z/manifest.json")) newest = name;
  return newest;
}

/** The lines in the order of their bytes. They need not fit the memory, but the folder of temporary files. */
async function* sorted(lines: AsyncIterable<string>, signal: AbortSignal): AsyncGenerator<string> {
  const sort = spawn("sort", [], { env: { ...process.env, LC_ALL: "C" }, signal });
  let problem = "";
  sort.stderr.on("data", (text: Buffer) => (problem += text.toString()));
  const ended = once(sort, "close");
  ended.catch(() => {});
  try {
    await once(sort, "spawn");
    await pipeline(Readable.from(lines), sort.stdin, { signal });
    yield* createInterface({ input: sort.stdout });
    const [code] = await ended;
    if (code !== 0) throw new Error(`it ended with ${code}`);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AgaroseError) throw error;
    const message = `\`sort\` cannot order the names of an inventory in ${tmpdir()}: ${problem || (error as Error).message}`;
    throw new AgaroseError("DISK_FULL", message, {}, error);
  } finally {
    sort.kill();
  }
}
