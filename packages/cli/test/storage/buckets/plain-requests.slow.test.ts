/** Stores that refuse what the AWS SDK adds to requests, at the embedded endpoint behind a server that refuses it. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkRegion } from "@agarose/storage/doctor/check-region";
import { CREDENTIALS, REGIONS, startTestWorld, storesOf, type World } from "../../world.ts";

let world: World;
let refused: string[];

beforeEach(async () => {
  world = await startTestWorld();
  refused = [];
});

afterEach(() => world.close());

type Quirk = (request: IncomingMessage) => string | undefined;

const QUIRKS: Record<string, { readonly status: number; readonly finds: Quirk }> = {
  "checksum headers": {
    status: 400,
    finds: ({ headers }) => Object.keys(headers).find((name) => /^x-amz-(checksum|sdk-checksum|trailer)/.test(name)),
  },
  "checksum headers, with 501": {
    status: 501,
    finds: ({ headers }) => Object.keys(headers).find((name) => /^x-amz-(checksum|sdk-checksum|trailer)/.test(name)),
  },
  "aws-chunked bodies": {
    status: 501,
    finds: ({ headers }) => (headers["content-encoding"] === "aws-chunked" ? "aws-chunked" : undefined),
  },
  "DeleteObjects without Content-MD5": {
    status: 400,
    finds: ({ method, headers }) => (method === "POST" && !headers["content-md5"] ? "no content-md5" : undefined),
  },
  DeleteObjects: { status: 501, finds: ({ method }) => (method === "POST" ? "POST" : undefined) },
};

/** Never sent, so that no store has to refuse them. */
const NEVER: Quirk = ({ url = "", headers }) =>
  /[?&]x-id=/.test(url) ? "x-id" : headers.expect === undefined ? undefined : "expect";

function refuse(region: string, { status, finds }: { status: number; finds: Quirk }): void {
  world.faults.set(region as (typeof REGIONS)[number], (request: IncomingMessage, response: ServerResponse) => {
    const found = finds(request);
    if (found === undefined) return false;
    refused.push(found);
    const message = `Unsupported header '${found}' received for this API call.`;
    response.writeHead(status, { "content-type": "application/xml" });
    response.end(`<Error><Code>InvalidArgument</Code><Message>${message}</Message></Error>`);
    request.resume();
    return true;
  });
}

test.each(Object.keys(QUIRKS))("a bucket whose store refuses %s stores, lists and removes", async (quirk) => {
  refuse("tokyo", QUIRKS[quirk]!);
  const store = world.store("tokyo");
  const small = { bytes: 3, contentType: "text/plain" };
  await store.put("quirk/small", Buffer.from("abc"), small);
  const body = randomBytes(300_000);
  const stream = (): Promise<unknown> =>
    store.put("quirk/stream", Readable.from([body]), { bytes: body.length, contentType: "text/plain" });
  // A stream cannot be resent by the store: its caller does.
  await stream().catch(stream);
  const { body: read } = await store.get("quirk/stream");
  expect(Buffer.from(await new Response(read as BodyInit).arrayBuffer()).equals(body)).toBe(true);
  await store.put("quirk/new", Buffer.from("abc"), { ...small, ifNoneMatch: "*" });
  await expect(store.put("quirk/new", Buffer.from("abc"), { ...small, ifNoneMatch: "*" })).rejects.toMatchObject({
    details: { status: 412 },
  });
  expect(await store.remove(["quirk/small", "quirk/stream", "quirk/new"])).toEqual([]);
  for await (const { name } of store.list("quirk/")) expect.fail(`${name} is still there`);
  expect(refused.length, "the fault fired").toBeGreaterThan(0);
  const before = refused.length;
  await store.put("quirk/small", Buffer.from("abc"), small);
  await stream();
  await store.remove(["quirk/small", "quirk/stream"]);
  expect(refused.length, "it is remembered").toBe(before);
});

test("no request has what only some stores take and none needs", async () => {
  for (const region of REGIONS) refuse(region, { status: 417, finds: NEVER });
  await world.put("plain/large", randomBytes(6_000_000));
  expect(await world.get("plain/large")).toHaveLength(6_000_000);
  expect(refused).toEqual([]);
});

test("wrong bytes are refused, and do not turn checksums off", async () => {
  const store = world.store("tokyo");
  let broken = 0;
  world.faults.set("tokyo", (request, response) => {
    if (request.method !== "PUT" || broken > 0) return false;
    broken++;
    response.writeHead(400).end("<Error><Code>BadDigest</Code></Error>");
    request.resume();
    return true;
  });
  const put = store.put("wrong", Buffer.from("abc"), { bytes: 3, contentType: "text/plain" });
  await expect(put).rejects.toMatchObject({ code: "STORE_FAILED" });
  expect([broken, store.takesChecksums]).toEqual([1, true]);
});

test.each<{ few: readonly string[] }>([{ few: REGIONS }, { few: ["dublin"] }])(
  "an object is stored in all regions where $few refuse checksums",
  async ({ few }) => {
    for (const region of few) refuse(region, QUIRKS["checksum headers"]!);
    const body = randomBytes(3_000_000);
    await world.put("refused/object", body);
    expect(refused.length, "the fault fired").toBeGreaterThan(0);
    expect(await world.verify("refused/object")).toMatchObject({ sound: true });
  },
);

test("doctor fails for a store that refuses checksums, until the configuration says so", async () => {
  refuse("tokyo", QUIRKS["checksum headers"]!);
  const options = { fetch, nowMs: Date.now, signal: new AbortController().signal };
  const checks = await checkRegion(world.store("tokyo"), options);
  const found = checks.find(({ name }) => name === "checksums");
  expect(found).toMatchObject({ state: "fail", message: expect.stringContaining("set checksums to false") });
  const before = refused.length;
  const regions = world.config.regions.map((region) => ({ ...region, checksums: false }));
  const store = storesOf({ ...world.config, regions }, CREDENTIALS).find(({ region }) => region.name === "tokyo")!;
  const again = await checkRegion(store, options);
  store.close();
  expect(again.find(({ name }) => name === "checksums")?.state).toBe("ok");
  expect(refused.length).toBe(before);
});
