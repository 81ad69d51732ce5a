/** Any input from buckets, clients of the gateway and files is handled or ends in a typed error. */
import { systemClock } from "@agarose/core";
import { acceptUnsigned, trustPublishers } from "@agarose/core/format";
import { offencesOf, streamOf, testPublisher } from "@agarose/core/testing";
import { readCompletion, readDeletion } from "@agarose/s3-server";
import { readForm } from "@agarose/s3-server/wire/form";
import { checkPolicy } from "@agarose/s3-server/wire/post-policy";
import { expect, test } from "vitest";
import { parseConfig } from "@agarose/storage/config/config";
import { claimName } from "@agarose/storage/commit/names";
import { Breaker } from "@agarose/storage/regions/ask-regions";
import { isCopied } from "@agarose/storage/commit/claim";
import { readControl, type ControlRecord } from "@agarose/storage/commit/control-record";
import type { WriteContext } from "@agarose/storage/commit/write-context";
import type { Store } from "@agarose/storage/buckets/store";

const { signal } = new AbortController();
const publisher = await testPublisher();
const control: ControlRecord = {
  control: 1,
  region: "r0",
  deployment: "0".repeat(32),
  epoch: 1,
  signers: ["a"],
  signer: "a",
  retired: [],
  secrets: [{ prefix: "a/", ids: ["b"] }],
};

/** A region that answers every GET with these bytes, and lists one name. */
function storeOf(bytes: Uint8Array, name = ""): Store {
  return {
    region: { name: "r0" },
    get: async () => ({ status: 200, headers: new Headers({ etag: '"1"' }), body: streamOf([bytes]) }),
    list: async function* () {
      yield { name, bytes: bytes.length, modifiedMs: 0 };
    },
  } as unknown as Store;
}

/** The problem of a control record is returned, and its keys are those of nobody. */
async function controlOf(bytes: Uint8Array, trust: WriteContext["trust"]): Promise<void> {
  const { problem } = await readControl(storeOf(bytes), signal, trust);
  if (problem) throw problem;
}

/** Whether a claim of this text repeats generation 1. */
function claimOf(bytes: Uint8Array): Promise<boolean> {
  const stores = [storeOf(bytes, claimName("key", 2))];
  return isCopied("key", 1, {
    stores,
    signal,
    clock: systemClock,
    breaker: new Breaker(systemClock),
  } as unknown as WriteContext);
}

/** A form that begins with `head`. */
async function formOf(bytes: Uint8Array, head: string): Promise<void> {
  const form = await readForm("multipart/form-data; boundary=b", streamOf([Buffer.from(head), bytes]));
  for await (const _ of form.file);
}

test.each<[what: string, parse: (bytes: Uint8Array, text: string) => unknown, sample?: object]>([
  ["a control record", (bytes) => controlOf(bytes, acceptUnsigned), control],
  ["a signed control record", (bytes) => controlOf(bytes, trustPublishers([publisher.publicKey])), control],
  ["a claim", claimOf, { upload: "0".repeat(32), copies: 1 }],
  ["a configuration", (_, text) => parseConfig(text, "agarose.config.json")],
  ["the parts of an upload", (_, text) => readCompletion(text)],
  ["the keys to delete", (_, text) => readDeletion(text)],
  ["a form", (bytes) => formOf(bytes, "")],
  ["a part of a form", (bytes) => formOf(bytes, "--b\r\nContent-Disposition: form-data; ")],
  ["a file in a form", (bytes) => formOf(bytes, '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n')],
  [
    "the policy of a form",
    (bytes) => checkPolicy(new Map([["policy", Buffer.from(bytes).toString("base64")]]), 0),
    { expiration: "2030-01-01T00:00:00Z", conditions: [["eq", "$key", ""]] },
  ],
])("%s: hostile bytes end in a typed error, in bounded time", { timeout: 300_000 }, async (_, parse, sample) => {
  expect(await offencesOf(parse, sample)).toEqual([]);
});
