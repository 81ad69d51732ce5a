/** The example of README.md is `readme-example.ts`, which the compiler checks and this file runs. */
import { readFile } from "node:fs/promises";
import { systemSha256 } from "@agarose/core";
import { encodeManifest, sealManifest } from "@agarose/core/format";
import { FakeNetwork, sampleObject, testPublisher } from "@agarose/core/testing";
import { afterEach, expect, test, vi } from "vitest";
import { read as readBytes } from "./readme-example.ts";

afterEach(() => vi.unstubAllGlobals());

test("the README shows the example that runs here", async () => {
  const read = (name: string): Promise<string> => readFile(new URL(name, import.meta.url), "utf8");
  expect(await read("../README.md")).toContain(`\`\`\`ts\n${await read("readme-example.ts")}\`\`\``);
});

test("the example reads an object while a region is down", async () => {
  const options = { k: 2, m: 1, bytes: 1000, stripeBytes: 1000, sha256: systemSha256 };
  const { manifest: unsigned, bytes, shard } = await sampleObject(options);
  const { publicKey, sign } = await testPublisher();
  const manifest = await sealManifest(unsigned, systemSha256, sign);
  const network = new FakeNetwork((url) => {
    const { hostname, pathname } = new URL(url);
    if (hostname === "r0.example") return "refuse";
    if (pathname.includes("/manifests/")) return { status: 200, body: encodeManifest(manifest) };
    return { status: 200, body: shard(0, Number(pathname.at(-1))) };
  });
  vi.stubGlobal("fetch", network.fetch);
  const regions = manifest.placement.map((name) => ({ name, url: `https://${name}.example/bucket` }));
  expect(await readBytes(manifest.key, regions, [publicKey])).toEqual(bytes);
  expect(network.hosts()).toContain("r0.example");
});
