import { describe, expect, test } from "vitest";
import { hex, pseudoRandomBytes } from "../../test/objects/sample-object.ts";
import { systemSha256 } from "../ports.ts";
import { concat, hashShard, merkleRoot, subtreesBeside } from "./hash-tree.ts";

describe("hashShard", () => {
  test("is the SHA-256 of a shard of one block", async () => {
    const shard = pseudoRandomBytes(100);
    const flat = hex(await systemSha256(shard));
    expect(hex(await hashShard(shard, 100, systemSha256))).toBe(flat);
  });

  test("is the SHA-256 of the blocks' SHA-256 for a longer shard, the last block shorter", async () => {
    const shard = pseudoRandomBytes(250);
    const blocks = [shard.subarray(0, 100), shard.subarray(100, 200), shard.subarray(200)];
    const leaves = await Promise.all(blocks.map(systemSha256));
    expect(hex(await hashShard(shard, 100, systemSha256))).toBe(hex(await systemSha256(concat(leaves))));
  });
});

describe("merkleRoot", () => {
  // The tree of the test vectors of the Certificate Transparency reference implementation (RFC 6962, section 2.1).
  const LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
  const ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
  ];

  test.each(ROOTS.map((root, i) => [i + 1, root] as const))("of %i leaves is that of RFC 6962", async (count, root) => {
    const leaves = LEAVES.slice(0, count).map((text) =>
      Uint8Array.from(text.match(/../g) ?? [], (byte) => parseInt(byte, 16)),
    );
    expect(hex(await merkleRoot(leaves, systemSha256, { from: 0, count, beside: [] }))).toBe(root);
  });
});

describe("subtreesBeside", () => {
  test("are those of the audit paths of RFC 6962, section 2.1.3, from left to right", () => {
    const beside = (leaf: number): string[] =>
      subtreesBeside({ from: leaf, to: leaf + 1 }, 7).map(({ from, to }) => `${from}-${to}`);
    expect(beside(0)).toEqual(["1-2", "2-4", "4-7"]);
    expect(beside(3)).toEqual(["0-2", "2-3", "4-7"]);
    expect(beside(4)).toEqual(["0-4", "5-6", "6-7"]);
    expect(beside(6)).toEqual(["0-4", "4-6"]);
  });

  test("of several leaves are outside of all of them, and of the whole tree none", () => {
    expect(subtreesBeside({ from: 3, to: 6 }, 7)).toEqual([
      { from: 0, to: 2 },
      { from: 2, to: 3 },
      { from: 6, to: 7 },
    ]);
    expect(subtreesBeside({ from: 0, to: 7 }, 7)).toEqual([]);
    expect(subtreesBeside({ from: 0, to: 1 }, 1)).toEqual([]);
  });
});
