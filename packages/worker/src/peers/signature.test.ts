import { describe, expect, test } from "vitest";
import { claimOf, isSignedBy, signedHeaders, type SignedPeerRequest } from "./signature.ts";

const KEY = "a secret of the PoPs";
const REQUEST: SignedPeerRequest = {
  method: "POST",
  path: "/v1/peers",
  from: "lhr",
  to: "fra",
  sequence: 1_700_000_000_000,
  body: '{"turn":1}',
};

async function claim(request: SignedPeerRequest, key = KEY): Promise<NonNullable<ReturnType<typeof claimOf>>> {
  return claimOf(new Headers(await signedHeaders(request, key)))!;
}

describe("the signature of a peer", () => {
  test("proves the request it was made for", async () => {
    const { from, sequence, signature } = await claim(REQUEST);
    expect({ from, sequence }).toEqual({ from: "lhr", sequence: REQUEST.sequence });
    expect(await isSignedBy(REQUEST, signature, KEY)).toBe(true);
  });

  test("carries names that a header could not", async () => {
    const named = { ...REQUEST, from: "Zürich\n2" };
    const { from, signature } = await claim(named);
    expect(from).toBe(named.from);
    expect(await isSignedBy(named, signature, KEY)).toBe(true);
  });

  test.each<[string, Partial<SignedPeerRequest>]>([
    ["method", { method: "GET" }],
    ["path", { path: "/v1/peers?" }],
    ["sender", { from: "iad" }],
    ["receiver", { to: "iad" }],
    ["sequence", { sequence: REQUEST.sequence + 1 }],
    ["body", { body: '{"turn":2}' }],
  ])("proves nothing for another %s", async (_, other) => {
    const { signature } = await claim(REQUEST);
    expect(await isSignedBy({ ...REQUEST, ...other }, signature, KEY)).toBe(false);
  });

  test("proves nothing when it was made with another key", async () => {
    const { signature } = await claim(REQUEST, "somebody else's secret");
    expect(await isSignedBy(REQUEST, signature, KEY)).toBe(false);
  });

  test.each<[string, Record<string, string>]>([
    ["no sender", { "x-agarose-peer": "" }],
    ["a sender that is no text", { "x-agarose-peer": "%ff" }],
    ["no sequence", { "x-agarose-sequence": "soon" }],
    ["a signature of another length", { "x-agarose-signature": "ab" }],
  ])("is no claim with %s", async (_, wrong) => {
    expect(claimOf(new Headers({ ...(await signedHeaders(REQUEST, KEY)), ...wrong }))).toBeUndefined();
  });
});
