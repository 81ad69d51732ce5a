/** Puts and removals under `keep` while only the origin has the key, by programs, a sync and a gateway. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GetObjectCommand, ListObjectVersionsCommand, S3Client } from "@aws-sdk/client-s3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startWithOrigin, type WithOrigin } from "../../test/origin.ts";
import { allOf, KEYS } from "../../test/three-regions.ts";
import { S3Store } from "../buckets/s3-store.ts";
import { configOfFields } from "../config/config.ts";
import { Deployment, openDeployment } from "../deployment.ts";
import { startGateway, type Gateway } from "../gateway/gateway.ts";
import { closeParts, openParts, type DeploymentParts } from "../parts.ts";

let world: WithOrigin;
let store: Deployment;
let context: DeploymentParts;
let gateway: Gateway;
/** A client of the gateway. */
let client: S3Store;
let sdk: S3Client;

beforeEach(async () => {
  world = await startWithOrigin();
  const fields = { ...world.fields, keep: [{ prefix: "", time: "30d" }] };
  store = await openDeployment(fields);
  context = openParts(configOfFields(fields, "test"), {}, new AbortController().signal);
  gateway = await startGateway({ pairs: [KEYS], context, port: 0, host: "127.0.0.1", spoolBytes: 2 ** 20 });
  const bucket = { ...world.config.regions[0]!, endpoint: gateway.url, bucket: "agarose" };
  client = new S3Store(bucket, { credentials: KEYS, attempts: 1 });
  const shared = { region: "us-east-1", forcePathStyle: true, maxAttempts: 1, credentials: KEYS };
  sdk = new S3Client({ ...shared, endpoint: gateway.url });
});

afterEach(async () => {
  sdk.destroy();
  client.close();
  await gateway.close(0);
  closeParts(context);
  store.close();
  await world.close();
});

async function textOf(key: string): Promise<string> {
  return Buffer.concat(await allOf((await store.get(key)).body)).toString();
}

const put = (key: string, text: string): Promise<unknown> =>
  client.put(key, Buffer.from(text), { bytes: text.length, contentType: "text/plain" });

/** Kept versions of a key besides the current one. */
async function keptOf(key: string): Promise<string[]> {
  const { Versions = [] } = await sdk.send(new ListObjectVersionsCommand({ Bucket: "agarose", Prefix: key }));
  const older = Versions.filter(({ IsLatest }) => !IsLatest);
  return Promise.all(
    older.map(async ({ VersionId }) => {
      const { Body } = await sdk.send(new GetObjectCommand({ Bucket: "agarose", Key: key, VersionId }));
      return Body!.transformToString();
    }),
  );
}

test.each<[string, () => Promise<unknown>]>([
  ["a put of a gateway", () => put("note", "newer")],
  ["a removal of a gateway", () => client.remove(["note"])],
  ["a put of a program", () => store.put("note", "newer")],
  ["a removal of a program", () => store.remove("note")],
  ["a copy", () => store.put("other", "newer").then(() => store.copy("other", "note"))],
  ["a sync", () => syncOf({ note: "newer" })],
  ["a sync of many new files, which are claimed together", () => syncOf({ ...MANY, note: "newer" })],
])("what only the origin has is kept when %s takes its place", async (_what, replace) => {
  await world.put("note", "plain", { cacheControl: "max-age=60" });
  await replace();
  expect(await keptOf("note")).toEqual(["plain"]);
  const now = await textOf("note").catch((error: unknown) => (error as { code: string }).code);
  expect(["newer", "OBJECT_NOT_FOUND"]).toContain(now);
  await store.restore("note");
  expect(await textOf("note")).toBe("plain");
  expect((await store.stat("note")).headers).toMatchObject({ "cache-control": "max-age=60" });
});

const MANY = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`new-${at}`, "new"]));

async function syncOf(files: Readonly<Record<string, string>>): Promise<void> {
  const folder = join(world.folder, "files");
  await mkdir(folder);
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const outcomes = await allOf(store.sync({ folder }, { prefix: "" }));
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(Object.keys(files).map(() => "stored"));
}

test("two writers at once keep what the origin has, and each other's", async () => {
  await world.put("note", "plain");
  await Promise.all([store.put("note", "one"), put("note", "two"), store.put("note", "three")]);
  const texts = [await textOf("note"), ...(await keptOf("note"))];
  expect(texts.toSorted()).toEqual(["one", "plain", "three", "two"]);
});

test("an origin that does not answer is no reason to lose what it has: the write is refused", async () => {
  await world.put("note", "plain");
  world.fault.answer = (_request, response) => {
    response.writeHead(500).end();
    return true;
  };
  await expect(put("note", "newer")).rejects.toMatchObject({ details: { status: 503 } });
  await expect(store.remove("note")).rejects.toMatchObject({ code: "SOURCE_FAILED" });
  expect(world.fault.fired, "the fault fired").toBeGreaterThanOrEqual(2);
  world.fault.answer = undefined;
  expect(await textOf("note")).toBe("plain");
  await put("note", "newer");
  await world.stop();
  await store.put("note", "newest");
  expect(await textOf("note"), "the regions know the key, so that the origin is not asked").toBe("newest");
  await expect(store.put("unknown", "new")).rejects.toMatchObject({ code: "SOURCE_FAILED" });
});

test("a key without `keep` asks the origin nothing, and loses nothing that it promised", async () => {
  const plain = await openDeployment(world.fields);
  await world.put("note", "plain");
  world.fault.list = () => {
    world.fault.fired++;
    return false;
  };
  await plain.put("note", "newer");
  await plain.remove("note");
  plain.close();
  expect(world.fault.fired).toBe(0);
});
