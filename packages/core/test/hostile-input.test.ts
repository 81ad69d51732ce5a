/** Any input from buckets, PoPs and clients is handled or ends in a typed error. */
import { expect, test } from "vitest";
import { parseFrames, parsePlan, type Plan } from "../src/format/bundle.ts";
import { concat } from "../src/format/hash-tree.ts";
import { keyOfName, parseKey } from "../src/format/key.ts";
import { checksum } from "../src/format/manifest/encode.ts";
import { checkManifest, parseManifest } from "../src/format/manifest/index.ts";
import { acceptUnsigned, rawPublicKey, trustPublishers } from "../src/format/signature.ts";
import { keyInPath, objectAnswer } from "../src/http/object-response.ts";
import { parseRange } from "../src/http/range.ts";
import { FrameReader } from "../src/sources/frame-reader.ts";
import { systemSha256 } from "../src/ports.ts";
import { offencesOf } from "./hostile-input.ts";
import { testPublisher } from "./objects/publisher.ts";
import { sampleObject } from "./objects/sample-object.ts";
import { streamOf } from "./streams.ts";

const code = { k: 2, m: 1, stripeBytes: 300, regions: ["a", "b", "c"], sha256: systemSha256 };
const { manifest } = await sampleObject({ ...code, bytes: 1000 });
const publisher = await testPublisher();
const anyone = { key: manifest.key, sha256: systemSha256, trust: acceptUnsigned };
const publishers = { ...anyone, trust: trustPublishers([publisher.publicKey]) };
const plan: Plan = {
  pop: "fra",
  epoch: 7,
  version: manifest.version,
  manifest,
  cached: [0, 2],
  regions: ["a", "b", "c"].map((name, i) => ({ name, url: `https://${name}.example/b`, meanMs: 10 * i, sdMs: i })),
  delta: 1,
};

/** With the checksum at its end that a manifest must have, so that the rest is parsed. */
function sealed(bytes: Uint8Array): Uint8Array {
  const head = bytes.subarray(0, Math.max(0, bytes.lastIndexOf("}".charCodeAt(0))));
  return concat([head, new TextEncoder().encode(`,"crc32":"${checksum(head)}"}`)]);
}

/** The headers of a request, of which the hostile text is this one. */
const headers = (name: string, text: string) => ({ get: (other: string) => (other === name ? text : null) });

test.each<[what: string, parse: (bytes: Uint8Array, text: string) => unknown, sample?: object]>([
  ["a manifest", (bytes) => parseManifest(bytes, publishers)],
  ["a manifest of anyone", (bytes) => parseManifest(sealed(bytes), anyone), manifest],
  ["a signed manifest", (bytes) => parseManifest(sealed(bytes), publishers), manifest],
  ["the manifest of a plan", (_, text) => text.length < 1e6 && checkManifest(json(text), anyone), manifest],
  ["a plan", (bytes) => parsePlan(bytes, anyone), plan],
  ["the frames of a KV value", parseFrames],
  ["the frames of a bundle", (bytes) => new FrameReader(streamOf([bytes])).next()],
  ["a key", (_, text) => parseKey(text)],
  ["a key in a bucket", (_, text) => keyOfName(text)],
  ["a path", (_, text) => keyInPath(`/ec/${text}`, "/ec/")],
  ["a Range header", (_, text) => parseRange(text, 1000)],
  ["the headers of a request", (_, text) => objectAnswer(manifest, headers("range", text))],
  ["an If-None-Match header", (_, text) => objectAnswer(manifest, headers("if-none-match", text))],
  ["an If-Range header", (_, text) => objectAnswer(manifest, headers("if-range", text))],
  ["a public key", (_, text) => rawPublicKey(text)],
])("%s: hostile bytes end in a typed error, in bounded time", { timeout: 300_000 }, async (_, parse, sample) => {
  expect(await offencesOf(parse, sample)).toEqual([]);
});

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
