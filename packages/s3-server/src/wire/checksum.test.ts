/** The check values of the algorithms: the checksum of "123456789", as catalogues of them and the AWS SDK have it. */
import { expect, test } from "vitest";
import {
  CHECKSUM_ALGORITHMS,
  checkChecksumForm,
  checksumTypeOf,
  compositeChecksum,
  startChecksum,
} from "./checksum.ts";

const CHECK_VALUES = {
  CRC32: "y/Q5Jg==",
  CRC32C: "4waSgw==",
  CRC64NVME: "rosUhgp5mIg=",
  SHA1: "98O8HYCOBHMq32eZZczDTKeuNEE=",
  SHA256: "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
  SHA512: "2eZ2LdHI6vbWGzxhkvxAjU1tXxF20MKRabwk5xw/J0rSf81YEbMT1oH35V7ALXPUmclUVba1u1A6z1dPuo/+hQ==",
  MD5: "JfnnlDI7RTiF9RgfG2JNCw==",
  XXHASH64: "jLhB20DmroM=",
  XXHASH3: "ctyxi2ehff8=",
  XXHASH128: "MxGUd+3l3NXpcWQnaB1YYA==",
};

test("every algorithm has a check value", () => {
  expect(Object.keys(CHECK_VALUES).toSorted()).toEqual(CHECKSUM_ALGORITHMS.toSorted());
});

test.each(CHECKSUM_ALGORITHMS)("%s is that of the catalogue, in whatever parts the bytes come", async (algorithm) => {
  for (const parts of [["123456789"], ["1", "2345678", "", "9"]]) {
    const running = await startChecksum(algorithm);
    for (const part of parts) running.update(Buffer.from(part));
    expect(running.digest()).toBe(CHECK_VALUES[algorithm]);
  }
  expect(() => checkChecksumForm(algorithm, CHECK_VALUES[algorithm])).not.toThrow();
  for (const malformed of ["", "AAAA", "not base64!", `${CHECK_VALUES[algorithm]}AAAA`]) {
    expect(() => checkChecksumForm(algorithm, malformed)).toThrow(expect.objectContaining({ code: "InvalidRequest" }));
  }
});

test("two of one algorithm run at once without mixing", async () => {
  const [one, other] = [await startChecksum("CRC64NVME"), await startChecksum("CRC64NVME")];
  one.update(Buffer.from("1234"));
  other.update(Buffer.from("other"));
  one.update(Buffer.from("56789"));
  expect(one.digest()).toBe(CHECK_VALUES.CRC64NVME);
});

test("a composite checksum covers those of the parts and counts them, and an algorithm has the types of S3", async () => {
  const parts = [CHECK_VALUES.SHA1, CHECK_VALUES.SHA1];
  expect(await compositeChecksum("SHA1", parts)).toMatch(/^[A-Za-z0-9+/]{27}=-2$/);
  expect([checksumTypeOf("CRC32", undefined), checksumTypeOf("CRC64NVME", undefined)]).toEqual([
    "COMPOSITE",
    "FULL_OBJECT",
  ]);
  expect(() => checksumTypeOf("SHA256", "FULL_OBJECT")).toThrow(expect.objectContaining({ code: "InvalidRequest" }));
  expect(() => checksumTypeOf("CRC64NVME", "COMPOSITE")).toThrow(expect.objectContaining({ code: "InvalidRequest" }));
});
