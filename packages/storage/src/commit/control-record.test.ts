/** Possible answers of a bucket in place of a control record. */
import { acceptUnsigned } from "@agarose/core/format";
import { expect, test } from "vitest";
import type { Store } from "../buckets/store.ts";
import { readControl } from "./control-record.ts";

const RECORD = {
  control: 1,
  region: "r0",
  deployment: "0123456789abcdef0123456789abcdef",
  epoch: 3,
  signers: ["one"],
  signer: "one",
  retired: [],
  secrets: [{ prefix: "a/", ids: ["first"] }],
  signature: { keyId: "one", value: "AA==" },
};
const { signal } = new AbortController();

function read(record: unknown) {
  const get = async () => new Response(JSON.stringify(record), { headers: { etag: '"1"' } });
  return readControl({ region: { name: "r0" }, get } as unknown as Store, signal, acceptUnsigned);
}

test("a record is read as it was written", async () => {
  expect(await read(RECORD)).toMatchObject({ record: RECORD, etag: '"1"' });
});

test.each([
  [{ deployment: "none" }],
  [{ epoch: "3" }],
  [{ epoch: 3.5 }],
  [{ signers: [7] }],
  [{ signer: null }],
  [{ retired: [{}] }],
  [{ secrets: [{ prefix: "a/", ids: [1] }] }],
  [{ signature: { keyId: 7 } }],
])("%j is damage that names the remedy, whoever has signed it", async (change) => {
  const { record, problem } = await read({ ...RECORD, ...change });
  expect(record).toBeUndefined();
  expect(problem).toMatchObject({
    code: "MANIFEST_INVALID",
    message: expect.stringContaining("have `agarose doctor` fix it"),
  });
});

test("a later format is no damage", async () => {
  expect(await read({ control: 2 })).toMatchObject({ problem: { code: "MANIFEST_NEWER" } });
});
