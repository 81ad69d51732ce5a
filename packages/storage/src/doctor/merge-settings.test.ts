import { expect, test } from "vitest";
import { publicReadPolicy } from "../buckets/public-read.ts";
import { withPublicReads, withReadRule } from "./merge-settings.ts";

const OWN = {
  AllowedOrigins: ["*"],
  AllowedMethods: ["GET", "HEAD"],
  AllowedHeaders: ["range"],
  ExposeHeaders: ["Content-Length", "Content-Range", "ETag"],
  MaxAgeSeconds: 86_400,
};
const UPLOADS = { AllowedOrigins: ["https://admin.example"], AllowedMethods: ["PUT"], AllowedHeaders: ["*"] };
const NARROW = {
  AllowedOrigins: ["https://*.example"],
  AllowedMethods: ["GET", "PUT"],
  ExposeHeaders: ["x-own", "etag"],
};
const WIDE = { AllowedOrigins: ["*"], AllowedMethods: ["GET"], AllowedHeaders: ["*"], ExposeHeaders: ["*"] };

test("a rule of our own is the last, after those that do not answer its reads", () => {
  expect(withReadRule([], "*")).toEqual([OWN]);
  expect(withReadRule([UPLOADS], "*")).toEqual([UPLOADS, OWN]);
  const app = "https://app.other";
  expect(withReadRule([UPLOADS, NARROW], app)).toEqual([UPLOADS, NARROW, { ...OWN, AllowedOrigins: [app] }]);
});

test("a rule that answers the origin too narrowly stays behind a copy for reads that says more", () => {
  expect(withReadRule([UPLOADS, NARROW], "https://app.example")).toEqual([
    UPLOADS,
    {
      ...OWN,
      AllowedOrigins: NARROW.AllowedOrigins,
      ExposeHeaders: ["x-own", "etag", "Content-Length", "Content-Range"],
    },
    NARROW,
  ]);
});

test("a rule that is wide enough needs nothing more, and neither does a merged one", () => {
  expect(withReadRule([UPLOADS, WIDE], "*")).toBeUndefined();
  expect(withReadRule([WIDE, NARROW], "https://app.example")).toBeUndefined();
  for (const origin of ["*", "https://app.example", "https://app.other"]) {
    for (const rules of [[], [UPLOADS], [NARROW], [{ ...NARROW, AllowedOrigins: ["https://*", "http://*"] }]]) {
      expect(withReadRule(withReadRule(rules, origin)!, origin)).toBeUndefined();
    }
  }
});

const BUCKET = "agarose-dublin";
const OTHER = { Sid: "Audit", Effect: "Allow", Principal: { AWS: ["arn:aws:iam::1:root"] }, Action: "s3:ListBucket" };
const [READ] = (JSON.parse(publicReadPolicy(BUCKET)) as { Statement: object[] }).Statement;

test("other statements of a policy stay as they are", () => {
  expect(withPublicReads(undefined, BUCKET)).toBe(publicReadPolicy(BUCKET));
  const one = JSON.stringify({ Version: "2008-10-17", Id: "own", Statement: OTHER });
  const merged = { Version: "2008-10-17", Id: "own", Statement: [OTHER, READ] };
  expect(JSON.parse(withPublicReads(one, BUCKET)!)).toEqual(merged);
  expect(withPublicReads(JSON.stringify(merged), BUCKET)).toBeUndefined();
});

test("public reads are known in another spelling, and not taken for granted under a condition", () => {
  const policyOf = (statement: object): string => JSON.stringify({ Statement: [statement] });
  const spelled = {
    ...READ,
    Principal: { AWS: ["*"] },
    Action: ["s3:GetObject"],
    Resource: [`arn:aws:s3:::${BUCKET}/*`],
  };
  expect(withPublicReads(policyOf(spelled), BUCKET)).toBeUndefined();
  for (const other of [
    { ...READ, Condition: { IpAddress: { "aws:SourceIp": "10.0.0.0/8" } } },
    { ...READ, Effect: "Deny" },
    { ...READ, Resource: "arn:aws:s3:::another/*" },
  ]) {
    expect(JSON.parse(withPublicReads(policyOf(other), BUCKET)!)).toEqual({ Statement: [other, READ] });
  }
});

test.each(["not JSON", "[]", '{"Statement":"none"}', "{}"])(
  "the policy %j is of an unknown form, and stays",
  (policy) => {
    expect(() => withPublicReads(policy, BUCKET)).toThrow(expect.objectContaining({ code: "STORE_FAILED" }));
  },
);
