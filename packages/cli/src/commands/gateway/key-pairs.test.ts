import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readKeyPairs } from "./key-pairs.ts";

const SECRET = "wJalrXUtnFEMI";
const PAIR = { accessKeyId: "client", secretAccessKey: SECRET };
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-pairs-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function read(content: unknown): Promise<unknown> {
  const path = join(folder, "keys.json");
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return readKeyPairs(path);
}

test("the pairs of a file are what it says", async () => {
  const pairs = [
    { ...PAIR, accessKeyId: "a/b" },
    { ...PAIR, prefix: "größe/a/", readOnly: true },
    { ...PAIR, accessKeyId: "c", readOnly: false },
  ];
  expect(await read(pairs)).toEqual(pairs);
  expect(await read(`\uFEFF${JSON.stringify(pairs)}`)).toEqual(pairs);
});

test.each<[what: string, content: unknown, message: string]>([
  ["no JSON", `[{"accessKeyId": "client", "secretAccessKey": ${SECRET}}]`, "is not JSON"],
  ["no list", PAIR, "must be of type"],
  ["no pair", [], "`0` is missing"],
  ["a text", [SECRET], "`0` must be of type object"],
  ["an id twice", [PAIR, { ...PAIR, prefix: "a/" }], "has an `accessKeyId` twice"],
  ["an empty secret", [PAIR, { accessKeyId: "b", secretAccessKey: "" }], "`1.secretAccessKey` is empty"],
  ["no secret", [{ accessKeyId: "b" }], "`0.secretAccessKey` is missing"],
  ["a secret that is a number", [{ ...PAIR, secretAccessKey: 4242 }], "`0.secretAccessKey` must be of type string"],
  ["an empty id", [{ ...PAIR, accessKeyId: "" }], "`0.accessKeyId` is empty"],
  ["an id that no client can name", [{ ...PAIR, accessKeyId: "a,b" }], "`0.accessKeyId` is empty, or has a space"],
  ["another field", [{ ...PAIR, readonly: true }], "`0.readonly` is not a field of this file"],
  ["a right that is a text", [{ ...PAIR, readOnly: "false" }], "`0.readOnly` must be of type boolean"],
  ...["", "a", "a/b"].map((prefix): [string, unknown, string] => [
    `the prefix "${prefix}"`,
    [{ ...PAIR, prefix }],
    "`0.prefix` must be a key that ends with a slash",
  ]),
])("%s is an error that tells no secret", async (_, content, message) => {
  const error = (await read(content).catch((cause: unknown) => cause)) as Error;
  expect(error).toMatchObject({ code: "CONFIG_INVALID", message: expect.stringContaining(message) });
  expect(error.message).toContain(join(folder, "keys.json"));
  expect(JSON.stringify([error.message, (error as { details?: unknown }).details])).not.toMatch(/wJal|4242/);
});

test("a file that is not there is an error with its path", async () => {
  await expect(readKeyPairs(join(folder, "none"))).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: `${join(folder, "none")} does not exist: give --keys the file with the pairs of keys`,
  });
});
