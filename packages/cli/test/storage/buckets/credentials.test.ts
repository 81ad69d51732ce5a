/** Six S3 servers, each with keys of its own that come from elsewhere, and a seventh whose keys are wrong. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ListBucketsCommand } from "@aws-sdk/client-s3";
import { findVersitygw, startS3Endpoint, startVersitygw, type S3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { runAgarose } from "../../world.ts";
import type { RegionConfig } from "@agarose/storage/config/config";
import { credentialsByRegion } from "@agarose/storage/buckets/credentials";
import { limitCredentials, openClient, storeFailure } from "@agarose/storage/buckets/s3-client";

const SOURCES = ["top", "profile", "env", "command", "provider", "process", "wrong", "role"] as const;
const ROLE = "arn:aws:iam::123456789012:role/agarose";

const versitygw = await findVersitygw();
const servers = [
  { name: "the embedded S3 endpoint", start: startS3Endpoint, isMissing: false, takesRoles: true },
  // It refuses session tokens, which the keys of a role have.
  {
    name: `versitygw${versitygw ? "" : " (skipped: versitygw is not installed)"}`,
    start: startVersitygw,
    isMissing: !versitygw,
    takesRoles: false,
  },
];

describe.each(servers.filter(({ isMissing }) => !isMissing))("$name", ({ start, takesRoles }) => {
  let folder: string;
  let gateways: S3Endpoint[];
  let sts: Server;
  let stsUrl: string;
  let roleRequests = 0;
  const keysOf = (name: string) => ({ accessKeyId: `AKIA${name.toUpperCase()}`, secretAccessKey: `secret-of-${name}` });
  const env = (): Record<string, string> => ({
    AWS_ACCESS_KEY_ID: "unknown",
    AWS_SECRET_ACCESS_KEY: "nothing",

    AWS_ENDPOINT_URL_STS: stsUrl,
    ENV_ID: keysOf("env").accessKeyId,
    ENV_SECRET: keysOf("env").secretAccessKey,
    PROVIDER_ID: keysOf("provider").accessKeyId,
    PROVIDER_SECRET: keysOf("provider").secretAccessKey,
    WRONG_ID: keysOf("wrong").accessKeyId,
    WRONG_SECRET: "not-its-secret",
  });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "agarose-credentials-"));
    gateways = await Promise.all(SOURCES.map((name) => start({ ...keysOf(name), buckets: [`chunks-${name}`] })));
    // The answer of AssumeRole: keys that last for an hour.
    sts = createServer((request, response) => {
      roleRequests++;
      request.resume();
      const { accessKeyId, secretAccessKey } = keysOf("role");
      response
        .setHeader("content-type", "text/xml")
        .end(
          `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>` +
            `<AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey>` +
            `<SessionToken>token</SessionToken><Expiration>${new Date(Date.now() + 3_600_000).toISOString()}</Expiration>` +
            `</Credentials></AssumeRoleResult></AssumeRoleResponse>`,
        );
    });
    stsUrl = await listenLocally(sts);
    const profile = (name: string, keys: ReturnType<typeof keysOf>): string =>
      `[${name}]\naws_access_key_id = ${keys.accessKeyId}\naws_secret_access_key = ${keys.secretAccessKey}\n`;
    const profiles = [
      profile("for-all", keysOf("top")),
      profile("own", keysOf("profile")),
      profile("base", keysOf("base")),
      `[printed]\ncredential_process = ${process.execPath} ${join(folder, "process.mjs")}\n`,
      `[assumed]\nrole_arn = ${ROLE}\nsource_profile = base\nregion = us-east-1\n`,
    ];
    await writeFile(join(folder, "credentials"), profiles.join("\n"));
    for (const name of ["command", "process"]) {
      const { accessKeyId, secretAccessKey } = keysOf(name);
      const printed = { Version: 1, AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey };
      await writeFile(join(folder, `${name}.mjs`), `console.log(${JSON.stringify(JSON.stringify(printed))})`);
    }
  });

  afterAll(async () => {
    sts.close();
    await Promise.all(gateways.map((gateway) => gateway.close()));
    await rm(folder, { recursive: true });
  });

  async function writeConfig(names: readonly string[]): Promise<string> {
    const credentialsFile = join(folder, "credentials");
    const sources: Record<string, object> = {
      profile: { profile: "own", credentialsFile },
      env: { env: { accessKeyId: "ENV_ID", secretAccessKey: "ENV_SECRET" } },
      command: { command: [process.execPath, join(folder, "command.mjs")] },
      process: { profile: "printed", credentialsFile },
      role: { profile: "assumed", credentialsFile },
      wrong: { env: { accessKeyId: "WRONG_ID", secretAccessKey: "WRONG_SECRET" } },
    };
    const config = {
      regions: names.map((name) => ({
        name,
        provider: name === "provider" ? "r2" : "aws",
        endpoint: gateways[SOURCES.indexOf(name as "top")]!.url,
        bucket: `chunks-${name}`,
        ...(sources[name] && { credentials: sources[name] }),
      })),
      code: { k: names.length - 2, m: 2 },
      credentials: { profile: "for-all", credentialsFile },
      ...(names.includes("provider") && {
        providers: { r2: { credentials: { env: { accessKeyId: "PROVIDER_ID", secretAccessKey: "PROVIDER_SECRET" } } } },
      }),
    };
    const path = join(folder, `${names.join("-")}.json`);
    await writeFile(path, JSON.stringify(config));
    return path;
  }

  test("six regions with keys of their own store and read an object", async () => {
    const config = await writeConfig([...SOURCES.slice(0, 6), ...(takesRoles ? ["role"] : [])]);
    await writeFile(join(folder, "file"), "six keys");
    const put = await runAgarose(["put", join(folder, "file"), "--config", config, "--json"], folder, env());
    expect(JSON.parse(put.stdout.toString())).toMatchObject({
      objects: [{ key: "file", outcome: "stored", regionsWithoutManifest: [] }],
    });
    const get = await runAgarose(["get", "file", "-", "--config", config], folder, env());
    expect(get.stdout.toString()).toBe("six keys");
    const verify = await runAgarose(["verify", "--config", config, "--json"], folder, env());
    expect(JSON.parse(verify.stdout.toString())).toMatchObject({
      damaged: 0,
      unchecked: 0,
      objects: [{ sound: true }],
    });
    expect(roleRequests > 0).toBe(takesRoles);
  });

  test("refuses wrong keys with the region and the source of its keys, and shows no secret", async () => {
    const config = await writeConfig(["top", "env", "wrong"]);
    const doctor = await runAgarose(["doctor", "--config", config, "--json"], folder, env());
    const checks: { subject: string; name: string; state: string; message: string }[] = JSON.parse(
      doctor.stdout.toString(),
    ).checks;
    const states = Object.fromEntries(
      checks.filter(({ name }) => name === "credentials").map((c) => [c.subject, c.state]),
    );
    expect(states).toEqual({ top: "ok", env: "ok", wrong: "fail" });
    const message = checks.find(({ subject, state }) => subject === "wrong" && state === "fail")!.message;
    expect(message).toContain("CREDENTIALS_REFUSED: region wrong refused");
    expect(message).toContain("environment variables WRONG_ID and WRONG_SECRET (`credentials` of region wrong)");
    await writeFile(join(folder, "file"), "wrong keys");
    const put = await runAgarose(["put", join(folder, "file"), "--config", config], folder, env());
    expect(put.code).toBe(1);
    expect(put.stderr).toContain("CREDENTIALS_REFUSED");
    expect(put.stderr).toContain("region wrong");
    expect(put.stderr).toContain("WRONG_ID and WRONG_SECRET");
    expect(doctor.stdout.toString() + put.stderr).not.toContain("not-its-secret");
  });
});

describe("sources of keys", () => {
  const region = { name: "fra", provider: "aws" } as never;
  const open = (credentials: object | undefined, env: Record<string, string> = {}) =>
    credentialsByRegion({ credentials, providers: {} } as never, env)(region);
  const keys = (credentials: object, env?: Record<string, string>): Promise<unknown> =>
    (open(credentials, env).provider as () => Promise<unknown>)();
  const command = (script: string): object => ({ command: [process.execPath, "-e", script] });

  test.each([
    [{ AWS_PROFILE: "mistyped", AWS_ACCESS_KEY_ID: "x" }, 'AWS profile "mistyped" (AWS_PROFILE)'],
    [{ AWS_ACCESS_KEY_ID: "x" }, "environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"],
    [{}, "the AWS default chain"],
  ])("without credentials in the configuration the default chain is named: %j", (env, origin) => {
    expect(open(undefined, env).origin).toContain(origin);
    expect(open(undefined, env).provider).toBeUndefined();
  });

  test("keys that never come end a request with an error about keys", async () => {
    const endpoint = { name: "fra", endpoint: "http://127.0.0.1:1", bucket: "b", provider: "aws" } as RegionConfig;
    const client = openClient(endpoint, { credentials: () => new Promise(() => {}) });
    limitCredentials(client, 50);
    const failure = await client.send(new ListBucketsCommand()).catch((error: unknown) => error);
    const { code, message } = storeFailure(failure, "STORE_FAILED", "to store a", endpoint, "AWS profile a");
    expect([code, message]).toEqual(["CREDENTIALS_REFUSED", expect.stringContaining("no keys within 50 ms")]);
    client.destroy();
  });

  test("a variable that is not set is named", async () => {
    const names = { env: { accessKeyId: "ID", secretAccessKey: "SECRET" } };
    await expect(keys(names, { ID: "x" })).rejects.toThrow("environment variable SECRET is not set");
  });

  test.each([
    ["console.log('not JSON: s3cr3t')", "printed no credential_process JSON"],
    ["console.log(JSON.stringify({ Version: 1, AccessKeyId: 's3cr3t' }))", "wrong or missing SecretAccessKey"],
    ["process.exit(3)", "ended with 3"],
  ])("a command that fails is named without its output: %s", async (script, message) => {
    const failure = await keys(command(script)).catch((error: Error) => error.message);
    expect(failure).toContain(message);
    expect(failure).not.toContain("s3cr3t");
  });

  test("a command that does not exist is named", async () => {
    await expect(keys({ command: ["/no/such/program"] })).rejects.toThrow('command "/no/such/program" did not run');
  });

  test("keys of a command are kept until they are about to expire", async () => {
    const print = (lifeMs: number): object =>
      command(
        `console.log(JSON.stringify({ Version: 1, AccessKeyId: String(process.hrtime.bigint()), SecretAccessKey: "s",` +
          ` Expiration: new Date(Date.now() + ${lifeMs}).toISOString() }))`,
      );
    const long = open(print(3_600_000)).provider as () => Promise<unknown>;
    expect(await long()).toEqual(await long());
    const short = open(print(60_000)).provider as () => Promise<unknown>;
    expect(await short()).not.toEqual(await short());
  });
});
