/**
 * What signatures cost: parsing a manifest with and without the check of its signature, and sealing one with and
 * without signing it. Both happen on the machine itself, so they add no request to a read or a put.
 */
import { randomBytes } from "node:crypto";
import { systemSha256 } from "@agarose/core";
import {
  acceptUnsigned,
  BLOCK_BYTES,
  encodeHashes,
  encodeManifest,
  pageStripesOf,
  parseManifest,
  sealManifest,
  STRIPE_BYTES_DEFAULT,
  stripeCount,
  trustPublishers,
  type ManifestDraft,
  type Signer,
} from "@agarose/core/format";
import type { Bench } from "../bench.ts";
import { describeMachine } from "@agarose/dev-world/machine";
import { spread, summarize, table } from "@agarose/dev-world/statistics";

const SIZES = [100_000, 10_000_000, 1_000_000_000];
const [K, M] = [9, 3];
const ROUNDS = 40;
const ROUNDS_QUICK = 20;

export const signingCost: Bench = {
  name: "signing-cost",
  title: "Signing and checking manifests",
  async run({ quick, progress }) {
    const { sign, publicKey } = await publisher();
    const trust = trustPublishers([publicKey]);
    const rows: string[][] = [];
    for (const bytes of SIZES) {
      const draft = draftOf(bytes);
      const encoded = encodeManifest(await sealManifest(draft, systemSha256, sign));
      const ways = {
        parse: () => parseManifest(encoded, { key: draft.key, trust: acceptUnsigned, sha256: systemSha256 }),
        check: () => parseManifest(encoded, { key: draft.key, trust, sha256: systemSha256 }),
        seal: () => sealManifest(draft, systemSha256),
        sign: () => sealManifest(draft, systemSha256, sign),
      };
      const ms = await alternate(ways, quick ? ROUNDS_QUICK : ROUNDS);
      // Of the two in the same round, because other work on the machine slows both.
      const added = (of: "check" | "sign", without: "parse" | "seal"): string =>
        spread(summarize(ms[of].map((one, round) => one - ms[without][round]!)), 2);
      const row = (["parse", "seal"] as const).map((way) => spread(summarize(ms[way]), 2));
      rows.push([`${bytes / 1e6} MB`, row[0]!, added("check", "parse"), row[1]!, added("sign", "seal")]);
      progress(
        `${bytes / 1e6} MB: a check adds ${added("check", "parse")} ms, a signature ${added("sign", "seal")} ms`,
      );
    }
    return [
      `Manifests of objects with ${K}+${M} and the default stripes, parsed with and without the check of their signature, ` +
        `and sealed with and without one; the four ways alternate, median (quartiles) of ${quick ? ROUNDS_QUICK : ROUNDS} ` +
        "rounds after as many uncounted ones, in Node with its WebCrypto. A read parses one manifest and a put seals one.",
      table(["object", "parse, ms", "added by the check", "seal, ms", "added by signing"], rows),
      describeMachine(),
    ].join("\n\n");
  },
};

async function alternate<W extends string>(
  ways: Readonly<Record<W, () => Promise<unknown>>>,
  rounds: number,
): Promise<Record<W, readonly number[]>> {
  const names = Object.keys(ways) as W[];
  const ms = new Map(names.map((name) => [name, [] as number[]]));
  for (let round = 0; round < 2 * rounds; round++) {
    for (const name of names) {
      const startMs = performance.now();
      await ways[name]();
      if (round >= rounds) ms.get(name)!.push(performance.now() - startMs);
    }
  }
  return Object.fromEntries(ms) as unknown as Record<W, readonly number[]>;
}

/** The manifest of an object of random hashes, which cost as much as those of real bytes. */
function draftOf(bytes: number): ManifestDraft {
  const layout = { k: K, m: M, bytes, stripeBytes: STRIPE_BYTES_DEFAULT };
  const pageStripes = pageStripesOf(layout);
  const hashes = Array.from({ length: Math.ceil(stripeCount(layout) / (pageStripes ?? 1)) }, () =>
    encodeHashes(Array.from({ length: pageStripes ? 1 : K + M }, () => new Uint8Array(randomBytes(32)))),
  );
  return {
    key: "bench/object",
    generation: 1,
    upload: "0".repeat(32),
    bytes,
    contentType: "application/octet-stream",
    headers: {},
    modified: new Date(0).toISOString(),
    k: K,
    m: M,
    stripeBytes: STRIPE_BYTES_DEFAULT,
    blockBytes: BLOCK_BYTES,
    sha256: "0".repeat(64),
    placement: Array.from({ length: K + M }, (_, chunk) => `r${chunk % 6}`),
    ...(pageStripes && { pageStripes, leaves: ["r0"], requires: ["pages"] }),
    hashes,
  };
}

async function publisher(): Promise<{ sign: Signer; publicKey: string }> {
  const pair = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  const raw = Buffer.from(await crypto.subtle.exportKey("raw", pair.publicKey));
  const keyId = Buffer.from(await crypto.subtle.digest("SHA-256", raw))
    .subarray(0, 8)
    .toString("hex");
  return {
    publicKey: `ed25519:${raw.toString("base64")}`,
    async sign(signed) {
      const value = await crypto.subtle.sign("Ed25519", pair.privateKey, signed as Uint8Array<ArrayBuffer>);
      return { keyId, value: Buffer.from(value).toString("base64") };
    },
  };
}
