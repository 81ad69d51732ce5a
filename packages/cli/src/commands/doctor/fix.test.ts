/** `agarose doctor --fix` against versitygw, a real S3 server, and against stores that refuse. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as s3 from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findVersitygw, startS3Endpoint, startVersitygw, type S3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { publicReadPolicy } from "@agarose/storage/buckets/public-read";
import { CREDENTIALS, runAgarose, spawnAgarose } from "../../../test/world.ts";
import type { Check } from "@agarose/storage/doctor/check";
import type { Fix } from "@agarose/storage/doctor/fix";

const TIMEOUT_MS = 60_000;
const CORS_RULE = { AllowedOrigins: ["https://admin.example"], AllowedMethods: ["PUT"], AllowedHeaders: ["*"] };

interface Report {
  readonly ok: boolean;
  readonly checks: readonly Check[];
  readonly fixes: readonly Fix[];
}

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "agarose-fix-"));
});

afterAll(() => rm(dir, { recursive: true, force: true }));

/** Writes a configuration of three regions at `url` in its own folder. */
async function configOf(
  name: string,
  url: string,
  isLastPrivate = false,
): Promise<{ path: string; folder: string; buckets: string[] }> {
  const folder = await mkdtemp(join(dir, `${name}-`));
  const buckets = ["a", "b", "c"].map((region) => `${name}-${region}`);
  const regions = buckets.map((bucket, at) => ({
    name: bucket,
    provider: bucket,
    endpoint: url,
    bucket,
    ...(at === 2 && isLastPrivate && { private: true }),
  }));
  const path = join(folder, "agarose.config.json");
  await writeFile(path, JSON.stringify({ regions, code: { k: 2, m: 1 }, survive: { regions: 1, providers: 1 } }));
  return { path, folder, buckets };
}

async function doctor(path: string, ...args: string[]): Promise<Report & { code: number }> {
  const { code, stdout } = await runAgarose(["--config", path, "doctor", "--json", ...args], dir);
  return { code, ...(JSON.parse(stdout.toString()) as Report) };
}

const outcomes = (fixes: readonly Fix[]): string[] =>
  fixes.map(({ subject, remedy, outcome }) => `${subject} ${remedy}: ${outcome}`);

const versitygw = await findVersitygw();
const reason = versitygw ? "" : " (skipped: versitygw is not installed, `go install` builds it)";

describe.skipIf(!versitygw)(`versitygw${reason}`, { timeout: TIMEOUT_MS }, () => {
  let server: S3Endpoint;
  let client: s3.S3Client;

  beforeAll(async () => {
    server = await startVersitygw({ ...CREDENTIALS, buckets: [], cors: false });
    const options = { region: "us-east-1", forcePathStyle: true, credentials: CREDENTIALS };
    client = new s3.S3Client({ ...options, endpoint: server.url });
  }, TIMEOUT_MS);

  afterAll(async () => {
    client?.destroy();
    await server?.close();
  });

  const bucketNames = async (): Promise<(string | undefined)[]> =>
    ((await client.send(new s3.ListBucketsCommand())).Buckets ?? []).map(({ Name }) => Name);
  const corsOf = async (Bucket: string) => (await client.send(new s3.GetBucketCorsCommand({ Bucket }))).CORSRules;
  const policyOf = (Bucket: string): Promise<string> =>
    client.send(new s3.GetBucketPolicyCommand({ Bucket })).then(
      ({ Policy }) => Policy!,
      (error: Error) => error.name,
    );

  test("missing buckets are made and opened, except the private one, and a second run finds nothing", async () => {
    const { path, buckets } = await configOf("new", server.url, true);
    const missing = await doctor(path);
    expect(missing).toMatchObject({ code: 1, ok: false });
    expect(missing).not.toHaveProperty("fixes");
    expect(missing.checks.filter(({ name }) => name === "bucket")).toMatchObject(
      buckets.map((subject) => ({ subject, state: "fail", remedy: "make bucket" })),
    );

    const planned = await doctor(path, "--fix", "--dry-run");
    expect(outcomes(planned.fixes)).toEqual(buckets.map((name) => `${name} make bucket: planned`));
    expect(planned.code).toBe(1);
    expect(await bucketNames()).not.toContain(buckets[0]);

    const fixed = await doctor(path, "--fix");
    // versitygw refuses unsigned reads before it looks at CORS rules. Its answers to preflights have them.
    const privately = [{ subject: "new-c", name: "cors", remedy: "set CORS" }];
    const findings = fixed.checks.filter(({ subject, state }) => buckets.includes(subject) && state !== "ok");
    expect(findings).toMatchObject(privately);
    expect(fixed.checks).toContainEqual(expect.objectContaining({ subject: "new-c", name: "preflight", state: "ok" }));
    expect(outcomes(fixed.fixes).toSorted()).toEqual([
      "new-a allow public reads: fixed",
      "new-a make bucket: fixed",
      "new-a set CORS: fixed",
      "new-b allow public reads: fixed",
      "new-b make bucket: fixed",
      "new-b set CORS: fixed",
      "new-c make bucket: fixed",
      "new-c set CORS: fixed",
    ]);
    expect(await policyOf("new-c")).toBe("NoSuchBucketPolicy");

    const again = await doctor(path, "--fix");
    expect(outcomes(again.fixes)).toEqual(["new-c set CORS: kept"]);
    expect(await corsOf("new-c")).toHaveLength(1);
  });

  test("rules and statements that are there stay, and a dry run changes none", async () => {
    const { path, buckets } = await configOf("kept", server.url);
    const statement = {
      Sid: "Team",
      Effect: "Allow",
      Principal: "*",
      Action: "s3:GetObject",
      Resource: "arn:aws:s3:::kept-a/manifests/team/*",
    };
    for (const Bucket of buckets) await client.send(new s3.CreateBucketCommand({ Bucket }));
    const CORSConfiguration = { CORSRules: [CORS_RULE] };
    await client.send(new s3.PutBucketCorsCommand({ Bucket: "kept-a", CORSConfiguration }));
    const before = JSON.stringify({ Version: "2012-10-17", Statement: [statement] });
    await client.send(new s3.PutBucketPolicyCommand({ Bucket: "kept-a", Policy: before }));

    const planned = await doctor(path, "--fix", "--dry-run");
    expect(planned.fixes.every(({ outcome }) => outcome === "planned")).toBe(true);
    expect(await policyOf("kept-a")).toBe(before);
    expect(await corsOf("kept-a")).toHaveLength(1);

    expect(await doctor(path, "--fix", "--origin", "https://app.example")).toMatchObject({ code: 0 });
    const [read] = (JSON.parse(publicReadPolicy("kept-a")) as { Statement: object[] }).Statement;
    expect((JSON.parse(await policyOf("kept-a")) as { Statement: object[] }).Statement).toEqual([statement, read]);
    expect(await corsOf("kept-a")).toMatchObject([CORS_RULE, { AllowedOrigins: ["https://app.example"] }]);
  });

  test("two at once both end well", async () => {
    const { path, buckets } = await configOf("twice", server.url);
    const both = await Promise.all([1, 2].map(() => spawnAgarose(["--config", path, "doctor", "--json", "--fix"])));
    expect(both.map(({ code, stdout, stderr }) => (code === 0 ? code : stdout.toString() + stderr))).toEqual([0, 0]);
    expect(await corsOf(buckets[0]!)).toHaveLength(1);
    expect((JSON.parse(await policyOf(buckets[0]!)) as { Statement: object[] }).Statement).toHaveLength(1);
    expect(await doctor(path, "--fix")).toMatchObject({ code: 0, ok: true, fixes: [] });
  });

  test("a bucket with other objects, or beside private prefixes, is not made public", async () => {
    const { path, folder, buckets } = await configOf("other", server.url);
    for (const Bucket of buckets) await client.send(new s3.CreateBucketCommand({ Bucket }));
    await client.send(new s3.PutObjectCommand({ Bucket: "other-a", Key: "payroll/2026.csv", Body: "x" }));
    const foreign = await doctor(path, "--fix");
    expect(foreign).toMatchObject({ code: 1, ok: false });
    const [refused, ...more] = foreign.fixes.filter(({ outcome }) => outcome === "failed");
    expect(refused).toMatchObject({
      subject: "other-a",
      remedy: "allow public reads",
      error: { code: "CONFIG_INVALID" },
    });
    expect(refused!.message).toContain("payroll/");
    expect(more).toEqual([]);
    expect(await policyOf("other-a")).toBe("NoSuchBucketPolicy");

    const guarded = await configOf("guarded", server.url);
    const vars = { PRIVATE_PREFIXES: JSON.stringify(["members/"]) };
    await writeFile(join(guarded.folder, "wrangler.jsonc"), JSON.stringify({ env: { fra: { vars } } }, undefined, 2));
    await doctor(guarded.path, "--fix");
    for (const bucket of guarded.buckets) expect(await policyOf(bucket)).toBe("NoSuchBucketPolicy");
    // A bucket that is public already is no reason to fail, whatever is in it.
    await writeFile(join(folder, "wrangler.jsonc"), JSON.stringify({ vars: { PRIVATE_PREFIXES: "[]" } }));
    await client.send(new s3.PutBucketPolicyCommand({ Bucket: "other-a", Policy: publicReadPolicy("other-a") }));
    expect(await doctor(path, "--fix")).toMatchObject({ code: 0 });
  });
});

describe("a store that refuses settings", { timeout: TIMEOUT_MS }, () => {
  let server: S3Endpoint;
  const refused: string[] = [];

  beforeAll(async () => {
    const buckets = ["none-a", "none-b", "none-c"];
    server = await startS3Endpoint({
      ...CREDENTIALS,
      buckets: buckets.slice(1),
      // The embedded endpoint is public, and answers NotImplemented to policies. This closes it, and denies one policy.
      async intercept(request, response) {
        const url = new URL(request.url ?? "/", "http://x");
        const isUnsigned = request.headers.authorization === undefined && request.method === "GET";
        const isDenied = url.searchParams.has("policy") && url.pathname.startsWith("/none-b");
        if (!isUnsigned && !isDenied) return false;
        if (isDenied) refused.push(request.method ?? "");
        response.writeHead(403, { "content-type": "application/xml" });
        response.end("<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>");
        return true;
      },
    });
  });

  afterAll(() => server.close());

  test("says which, why and what to do by hand, fixes the others, and writes no policy that it could not read", async () => {
    const { path } = await configOf("none", server.url);
    const { code, fixes } = await doctor(path, "--fix");
    expect(code).toBe(1);
    expect(outcomes(fixes).slice(0, 3)).toEqual([
      "none-a make bucket: fixed",
      "none-a allow public reads: failed",
      "none-b allow public reads: failed",
    ]);
    expect(fixes[1]).toMatchObject({ error: { code: "STORE_FAILED", details: { error: "NotImplemented" } } });
    expect(fixes[2]).toMatchObject({ error: { code: "CREDENTIALS_REFUSED", details: { error: "AccessDenied" } } });
    for (const { message } of fixes.slice(1, 3)) expect(message).toContain("; by hand: give the bucket the policy {");
    expect(refused).toEqual(["GET"]);
    const text = (await runAgarose(["--config", path, "doctor", "--fix"], dir)).stdout.toString();
    expect(text).toMatch(/^failed {3}none-b: allow public reads: CREDENTIALS_REFUSED: /m);
  });

  test("--fix is for buckets, and --dry-run for --fix", async () => {
    const { path } = await configOf("usage", server.url);
    for (const args of [["--dry-run"], ["--fix", "--deployed"]]) {
      expect((await runAgarose(["--config", path, "doctor", ...args], dir)).code).toBe(2);
    }
  });
});
