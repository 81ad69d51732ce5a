import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { DEVELOPMENT_KEY } from "@agarose/core/format";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { loadConfig, parseConfig, type Config } from "./config.ts";
import { defineConfig, type ConfigInput } from "./define-config.ts";
import { keepMsOf } from "../commit/history.ts";
import { adminTokenOf } from "../pops/admin-token.ts";

const REGION = { name: "fra", provider: "aws", endpoint: "https://s3.example/", bucket: "chunks-fra" };
const CONFIG = { regions: [REGION], code: { k: 4, m: 2 }, unsigned: true };
const KEY = `ed25519:${"A".repeat(43)}=`;

function parse(json: unknown): ReturnType<typeof parseConfig> {
  return parseConfig(JSON.stringify(json), "agarose.config.json");
}

test("a module exports a configuration, beside which its files are", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-config-"));
  const load = async (name: string, text: string): Promise<Config> => {
    await writeFile(join(folder, name), text);
    return loadConfig(join(folder, name));
  };
  try {
    const config: ConfigInput = defineConfig({ ...CONFIG, credentials: { profile: "p", credentialsFile: "keys" } });
    const text = `const config: object = ${JSON.stringify(config)};\nexport default config;`;
    const { credentials, regions } = await load("agarose.config.ts", text);
    expect(credentials).toMatchObject({ credentialsFile: join(folder, "keys") });
    expect(regions).toMatchObject([{ name: "fra", awsRegion: "us-east-1" }]);
    for (const [name, wrong, problem] of [
      ["none.mjs", "export const config = {};", "exports no configuration"],
      ["throws.mjs", "throw new Error('no network')", "cannot be loaded (no network)"],
      ["fields.mjs", "export default { regions: [], zap: 1 }", "`zap` is not a field"],
    ] as const) {
      await expect(load(name, wrong)).rejects.toMatchObject({
        code: "CONFIG_INVALID",
        message: expect.stringContaining(problem),
      });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

describe("what a local world prints", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "agarose-config-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));
  const printed = (config: string): Promise<void> =>
    writeFile(join(folder, "world.json"), JSON.stringify({ app: "http://a", control: "http://c", config, pops: [] }));

  test("is read as the configuration that it names, whose files are beside that one", async () => {
    const inner = { ...CONFIG, credentials: { profile: "p", credentialsFile: "credentials" } };
    await writeFile(join(folder, "inner.json"), JSON.stringify(inner));
    await printed(join(folder, "inner.json"));
    const { credentials } = await loadConfig(join(folder, "world.json"));
    expect(credentials).toMatchObject({ credentialsFile: join(folder, "credentials") });
  });

  test("is refused when the world has ended, or names itself", async () => {
    await printed(join(folder, "ended.json"));
    await expect(loadConfig(join(folder, "world.json"))).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining("world.json has stopped"),
    });
    await printed(join(folder, "world.json"));
    await expect(loadConfig(join(folder, "world.json"))).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });
});

test("headers of keys are kept as manifests hold them, and those that cannot be served are refused", () => {
  const rule = (headers: object): object => ({ ...CONFIG, headers: [{ keys: "*.pdf", headers }] });
  expect(parse(rule({ "Content-Disposition": 'attachment; filename="Käse.pdf"' })).headers).toEqual([
    {
      keys: "*.pdf",
      headers: { "content-disposition": "attachment; filename=K_se.pdf; filename*=UTF-8''K%C3%A4se.pdf" },
    },
  ]);
  for (const headers of [{ "set-cookie": "a=b" }, { "cache-control": "no-cache\r\nx: y" }, { "cache-control": "" }]) {
    expect(() => parse(rule(headers)), JSON.stringify(headers)).toThrow(/`headers\.0/);
  }
  expect(() => parse({ ...CONFIG, headers: [{ keys: "*".repeat(1025), headers: {} }] })).toThrow(/`headers\.0\.keys`/);
});

test("defaults are filled in", () => {
  expect(parse(CONFIG)).toEqual({
    regions: [
      { ...REGION, endpoint: "https://s3.example", awsRegion: "us-east-1", url: "https://s3.example/chunks-fra" },
    ],
    code: { k: 4, m: 2 },
    unsigned: true,
    codes: [],
    headers: [],
    hot: { storage: 0.05 },
    compress: "small",
    auto: {},
    stripeBytes: 4 * 1024 * 1024,
    survive: { regions: 1, providers: 0 },
    encryption: [],
    keep: [],
    expire: [],
    pops: [],
    providers: {},
  });
});

test("a public URL of its own is kept", () => {
  const url = "https://cdn.example/fra";
  expect(parse({ ...CONFIG, regions: [{ ...REGION, url: `${url}/` }] }).regions[0]?.url).toBe(url);
});

describe("whose manifests count", () => {
  const { unsigned: _unsigned, ...NEITHER } = CONFIG;

  test.each([
    ["neither setting", NEITHER, "`agarose keys new`"],
    ["unsigned: false", { ...NEITHER, unsigned: false }, "`agarose keys new`"],
    ["both settings", { ...CONFIG, publicKeys: [KEY] }, "keep one"],
    ["no key in the list", { ...NEITHER, publicKeys: [] }, "`agarose keys new`"],
    ["a signing key alone", { ...CONFIG, signing: { keyFile: "a" } }, "`agarose keys show`"],
  ])("%s is refused, with what to do", (_what, json, remedy) => {
    expect(() => parse(json)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    expect(() => parse(json)).toThrow(remedy);
  });

  test("buckets of this machine alone need no setting, and one elsewhere does", () => {
    const local = { ...REGION, name: "here", endpoint: "http://127.0.0.1:7070" };
    expect(parse({ ...NEITHER, regions: [local] }).publicKeys).toBeUndefined();
    expect(() => parse({ ...NEITHER, regions: [local, REGION] })).toThrow("`agarose keys new`");
  });

  test("buckets of this machine that others reach by another address need a setting, and so does a PoP for others", () => {
    const local = { ...REGION, name: "here", endpoint: "http://127.0.0.1:7070" };
    const proxied = { ...local, url: "https://storage.example/bucket" };
    const pops = [{ name: "fra", url: "https://fra.example" }];
    expect(() => parse({ ...NEITHER, regions: [proxied] })).toThrow("`agarose keys new`");
    expect(() => parse({ ...NEITHER, regions: [local], pops })).toThrow("`agarose keys new`");
    expect(parse({ ...NEITHER, regions: [proxied], pops, publicKeys: [KEY] }).publicKeys).toEqual([KEY]);
  });

  test("the development key is trusted for this machine only, also beside another key", () => {
    const local = { ...REGION, name: "here", endpoint: "http://127.0.0.1:7070" };
    const { publicKey } = DEVELOPMENT_KEY;
    expect(parse({ ...NEITHER, regions: [local], publicKeys: [publicKey] }).publicKeys).toEqual([publicKey]);
    for (const publicKeys of [[publicKey], [KEY, publicKey]]) {
      expect(() => parse({ ...NEITHER, publicKeys })).toThrow("everyone knows");
    }
  });
});

describe("names what is wrong by its path", () => {
  test.each([
    ["regions", { ...CONFIG, regions: [] }],
    ["regions", { ...CONFIG, regions: [REGION, REGION] }],
    ["regions.0.endpoint", { ...CONFIG, regions: [{ ...REGION, endpoint: "ftp://x" }] }],
    ["regions.0.endpoint", { ...CONFIG, regions: [{ ...REGION, endpoint: "no url" }] }],
    ["regions.0.bucket", { ...CONFIG, regions: [{ ...REGION, bucket: "Bucket_1" }] }],
    ["regions.0.provider", { ...CONFIG, regions: [{ name: "a", endpoint: "https://x", bucket: "bbb" }] }],
    ["regions.0.secretAccessKey", { ...CONFIG, regions: [{ ...REGION, secretAccessKey: "no" }] }],
    ["regions.0.name", { ...CONFIG, regions: [{ ...REGION, name: "a b" }] }],
    ["code", { regions: [REGION], code: "automatic" }],
    ["codes.0.code.k", { ...CONFIG, codes: [{ prefix: "a/", code: { k: "1", m: 1 } }] }],
    ["auto.storageMax", { ...CONFIG, auto: { storageMax: 0.5 } }],
    ["regions.0.latencyMs", { ...CONFIG, regions: [{ ...REGION, latencyMs: -1 }] }],
    ["code.k", { ...CONFIG, code: { k: "4", m: 2 } }],
    ["code.m", { ...CONFIG, code: { k: 4, m: 1.5 } }],
    ["survive.providers", { ...CONFIG, survive: { regions: 1, providers: -1 } }],
    ["pops.0.url", { ...CONFIG, pops: [{ name: "fra", url: "x" }] }],
    ["credentials", { ...CONFIG, credentials: {} }],
    ["credentials", { ...CONFIG, credentials: { profile: "a", command: ["b"] } }],
    ["credentials", { ...CONFIG, credentials: { credentialsFile: "a", command: ["b"] } }],
    [
      "credentials.env.secretAccessKey",
      { ...CONFIG, credentials: { env: { accessKeyId: "A", secretAccessKey: "s/+" } } },
    ],
    ["regions.0.credentials.command", { ...CONFIG, regions: [{ ...REGION, credentials: { command: [] } }] }],
    ["providers.aws.credentials", { ...CONFIG, providers: { aws: {} } }],
    ["stripebytes", { ...CONFIG, stripebytes: 5 }],
  ])("%s", (field, json) => {
    expect(() => parse(json)).toThrow(
      expect.objectContaining({
        code: "CONFIG_INVALID",
        message: expect.stringContaining(`\`${field}\``),
        details: expect.objectContaining({ path: "agarose.config.json" }),
      }),
    );
  });
});

test.each([
  ["`survive.regions` is missing", { ...CONFIG, survive: { providers: 1 } }],
  ["`write.happy` with codes that differ by size", { regions: [REGION], unsigned: true, write: { happy: 1 } }],
  ["`codee` is not a field of this file", { ...CONFIG, codee: 1 }],
  ["`code.k` must be of type number", { ...CONFIG, code: { k: "4", m: 2 } }],
  ['`code` must be "auto" or an object', { ...CONFIG, code: "4+2" }],
  ["agarose.config.json must be of type object, and is null", null],
])("the message says it in plain words: %s", (words, json) => {
  expect(() => parse(json)).toThrow(words);
});

test("settings of a provider that no region has are refused", () => {
  const json = { ...CONFIG, providers: { gcs: { credentials: { profile: "a" } } } };
  expect(() => parse(json)).toThrow("`providers`");
});

test("a file that two configurations name is the same, by whatever path they are read", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-config-"));
  try {
    const path = join(folder, "agarose.config.json");
    const { unsigned: _, ...fields } = CONFIG;
    await writeFile(path, JSON.stringify({ ...fields, publicKeys: [KEY], signing: { keyFile: "key.pem" } }));
    const byOther = await loadConfig(relative(process.cwd(), path));
    expect(byOther.signing).toEqual((await loadConfig(path)).signing);
    expect(byOther.signing).toEqual({ keyFile: join(folder, "key.pem") });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("of a misspelt field, the error names what the file has", () => {
  const { name, ...region } = REGION;
  const text = JSON.stringify({ ...CONFIG, regions: [{ nmae: name, ...region }] });
  expect(() => parseConfig(text, "a.json")).toThrow("`regions.0.nmae` is not a field of this file");
});

test("the file of a PoP's admin token is next to the configuration, and the environment goes first", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-config-"));
  try {
    const pops = [{ name: "fra", url: "https://fra.example", adminTokenFile: "token" }];
    await writeFile(join(folder, "a.json"), JSON.stringify({ ...CONFIG, pops }));
    const [pop] = (await loadConfig(join(folder, "a.json"))).pops;
    expect(() => adminTokenOf(pop!)).toThrow(`${join(folder, "token")} does not exist`);
    await writeFile(join(folder, "token"), "of the file\n");
    expect(adminTokenOf(pop!)).toBe("of the file");
    vi.stubEnv("AGAROSE_ADMIN_TOKEN", "of all PoPs");
    expect(adminTokenOf(pop!)).toBe("of all PoPs");
  } finally {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  }
});

test("the web app's file is not taken for the configuration", () => {
  const text = JSON.stringify({ prefix: "/ec/", pops: [], regions: [] });
  expect(() => parseConfig(text, "agarose.json")).toThrow(/is the web app's public file/);
});

test("a byte order mark is ignored", () => {
  expect(parseConfig(`\uFEFF${JSON.stringify(CONFIG)}`, "agarose.config.json")).toEqual(parse(CONFIG));
});

test.each([
  { k: 0, m: 1 },
  { k: 128, m: 1 },
])("the code %j is CODE_INVALID", (code) => {
  expect(() => parse({ ...CONFIG, code })).toThrow(expect.objectContaining({ code: "CODE_INVALID" }));
});

test("of several rules of keep for a key, that of the longest prefix decides", () => {
  const rules = [{ time: "12h" }, { prefix: "photos/", time: "30d" }, { prefix: "photos/tmp/", time: "0d" }];
  const config = parse({ ...CONFIG, keep: rules });
  const hours = (key: string): number => keepMsOf(key, config) / 3_600_000;
  expect(["page", "photos/a", "photos/tmp/a"].map(hours)).toEqual([12, 720, 0]);
  expect(keepMsOf("page", parse(CONFIG))).toBe(0);
});

test.each([
  [[{ time: "30" }], "12h or 30d"],
  [[{ time: "30d" }, { prefix: "", time: "1d" }], "names a prefix twice"],
])("keep %j is CONFIG_INVALID", (keep, problem) => {
  expect(() => parse({ ...CONFIG, keep })).toThrow(
    expect.objectContaining({ code: "CONFIG_INVALID", message: expect.stringContaining(problem) }),
  );
});

test.each([0, 16 * 1024 * 1024 + 1])("stripes of %i bytes are CODE_INVALID", (stripeBytes) => {
  expect(() => parse({ ...CONFIG, stripeBytes })).toThrow(expect.objectContaining({ code: "CODE_INVALID" }));
});

test("a file that is not there, or is not JSON, is CONFIG_INVALID", async () => {
  await expect(loadConfig("/no/such/agarose.config.json")).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringContaining("choose another"),
  });
  expect(() => parseConfig("{", "x.json")).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
});
