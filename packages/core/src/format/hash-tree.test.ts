import { describe, expect, test } from "vitest";
import { hex, pseudoRandomBytes } from "../../test/objects/sample-object.ts";
import { systemSha256 } from "../ports.ts";
import { concat, hashLeaf, hashShard, merkleRoot } from "./hash-tree.ts";

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
    const nodes = await Promise.all(leaves.map((leaf) => hashLeaf(leaf, systemSha256)));
    expect(hex(await merkleRoot(nodes, systemSha256))).toBe(root);
    const roots = [nodes.slice(0, 4), nodes.slice(4)].map((subtree) => merkleRoot(subtree, systemSha256));
    const upper = await Promise.all(roots.slice(0, Math.ceil(count / 4)));
    expect(hex(await merkleRoot(upper, systemSha256)), "from the roots of subtrees").toBe(root);
  });
});
