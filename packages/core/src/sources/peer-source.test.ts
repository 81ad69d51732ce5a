import { describe, expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import { FakeNetwork, type Answer } from "../../test/fake-fetch.ts";
import { sampleObject } from "../../test/objects/sample-object.ts";
import { stripeShape } from "../format/manifest/index.ts";
import { peerSource } from "./peer-source.ts";

const sample = await sampleObject({ k: 2, m: 1, bytes: 250, stripeBytes: 100, key: "a b/ü.bin" });
const { manifest } = sample;
const shard = sample.shard(1, 2);

function setUp(answer: Answer) {
  const network = new FakeNetwork(() => answer);
  const held = [2];
  const source = peerSource({
    manifest,
    peer: { name: "lhr", url: "https://lhr.example" },
    chunks: () => held,
    latency: () => ({ meanMs: 60, sdMs: 5 }),
    fetch: network.fetch,
  });
  const abort = new AbortController();
  const fetch = () => source.fetch({ stripe: stripeShape(manifest, 1), chunk: 2, signal: abort.signal });
  return { source, held, network, abort, fetch };
}

describe("a peer source", () => {
  test("has the chunks that the peer reports, of every stripe", () => {
    const { source } = setUp({ status: 200 });
    expect([0, 1, 2, 3].map((chunk) => source.has(7, chunk))).toEqual([false, false, true, false]);
    expect(source).toMatchObject({ id: "lhr", kind: "peer", latency: { meanMs: 60, sdMs: 5 } });
  });

  test("follows later reports of the peer", () => {
    const { source, held } = setUp({ status: 200 });
    held.splice(0, 1, 0, 1);
    expect([0, 1, 2].map((chunk) => source.has(7, chunk))).toEqual([true, true, false]);
  });

  test("requests one shard", async () => {
    const { network, fetch } = setUp({ status: 200, body: shard });
    expect(await fetch()).toEqual(shard);
    const path = `/v1/chunk/a%20b/%C3%BC.bin?version=${manifest.version}&stripe=1&chunk=2`;
    expect(network.requests).toMatchObject([{ url: `https://lhr.example${path}` }]);
  });

  test.each<[string, Answer, string]>([
    ["404", { status: 404 }, "CHUNK_MISSING"],
    ["403", { status: 403 }, "SOURCE_FAILED"],
    ["503", { status: 503, body: shard }, "SOURCE_FAILED"],
    ["a redirect", { status: 302 }, "SOURCE_FAILED"],
    ["one byte too few", { status: 200, body: shard.subarray(1) }, "CHUNK_WRONG_LENGTH"],
    ["one byte too many", { status: 200, body: new Uint8Array([...shard, 0]) }, "CHUNK_WRONG_LENGTH"],
    ["a body that breaks off", { status: 200, body: shard.subarray(3), breaksOff: true }, "SOURCE_FAILED"],
    ["no answer", "refuse", "SOURCE_FAILED"],
  ])("reports %s", async (_, answer, code) => {
    expect((await rejectionOf(setUp(answer).fetch())).code).toBe(code);
  });

  test("rejects with the reason of the abort, not with a failure of the peer", async () => {
    const { abort, fetch } = setUp("hang");
    const fetching = fetch();
    const reason = new Error("enough");
    abort.abort(reason);
    await expect(fetching).rejects.toBe(reason);
  });
});
