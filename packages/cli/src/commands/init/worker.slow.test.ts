/** `agarose init --worker`: the file that it writes, read and built by Wrangler itself. */
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { unstable_getMiniflareWorkerOptions, unstable_readConfig } from "wrangler";
import { patchVariables, readEnvironments } from "../deploy/wrangler.ts";
import { runAgarose, spawnAgarose, type RunResult } from "../../../test/world.ts";

const ROOT = fileURLToPath(new URL("../../../../..", import.meta.url));
const KEY = `ed25519:${"A".repeat(43)}=`;
const ID = "0123456789abcdef0123456789abcdef";

const CONFIG = {
  regions: [
    { name: "frankfurt", provider: "aws", endpoint: "https://s3.eu-central-1.amazonaws.com", bucket: "ours-frankfurt" },
    {
      name: "r2",
      provider: "cloudflare",
      endpoint: "https://account.r2.example.com",
      bucket: "ours-r2",
      url: "https://r2.example.com",
      binding: "BUCKET_R2",
      egressUsdPerGb: 0,
    },
    {
      name: "closed",
      provider: "other",
      endpoint: "https://s3.us-east-1.example.com",
      bucket: "ours-closed",
      private: true,
      awsRegion: "us-east-1",
      popUrl: "https://inside.example.com/ours-closed",
    },
  ],
  code: { k: 2, m: 1 },
  publicKeys: [KEY],
  site: { prefix: "web/", notFound: "404.html" },
  pops: [
    { name: "fra", url: "https://fra.example.com", placement: "aws:eu-central-1" },
    { name: "sin", url: "https://sin.example.com", placement: "gcp:asia-southeast1", location: "apac" },
    { name: "home", url: "https://home.example.com", node: true },
  ],
};

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-init-worker-"));
  file = join(folder, "wrangler.jsonc");
  // As `npm install` of the packages does.
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  await configure(CONFIG);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const configure = (config: object): Promise<void> =>
  writeFile(join(folder, "agarose.config.json"), JSON.stringify(config));
const init = (...args: string[]): Promise<RunResult> => runAgarose(["init", "--worker", ...args], folder);
const read = (env: string): ReturnType<typeof unstable_readConfig> => unstable_readConfig({ config: file, env });

test("as a user has it: `agarose deploy --dry-run` builds every Worker, and nothing is left to write into the file", async () => {
  const written = await spawnAgarose(["init", "--worker"], { cwd: folder });
  expect([written.code, written.stderr]).toEqual([0, ""]);
  const run = await spawnAgarose(["deploy", "--dry-run", "--json"], { cwd: folder });
  expect(run.stderr).not.toContain("warning");
  expect(run.code).toBe(0);
  const { steps } = JSON.parse(run.stdout.toString()) as { steps: { step: { kind: string; pop: string } }[] };
  expect(steps.map(({ step }) => `${step.kind} ${step.pop}`)).toEqual([
    "build fra",
    "build sin",
    "deploy fra",
    "deploy sin",
    "peer-key fra,sin",
  ]);
});

test("names each thing once: regions, bindings, places, keys and peers come from the configuration", async () => {
  await init();
  const { fra, sin } = { fra: read("fra"), sin: read("sin") };
  expect([fra.name, sin.name]).toEqual(["agarose-fra", "agarose-sin"]);
  expect([fra.placement, sin.placement]).toEqual([{ region: "aws:eu-central-1" }, { region: "gcp:asia-southeast1" }]);
  expect([fra.vars["LOCATION"], sin.vars["LOCATION"]]).toEqual(["weur", "apac"]);
  for (const { vars, r2_buckets } of [fra, sin]) {
    expect(JSON.parse(String(vars["REGIONS"]))).toEqual([
      { name: "frankfurt", url: "https://s3.eu-central-1.amazonaws.com/ours-frankfurt" },
      { name: "r2", url: "https://r2.example.com", binding: "BUCKET_R2", egressUsdPerGb: 0 },
      {
        name: "closed",
        url: "https://s3.us-east-1.example.com/ours-closed",
        popUrl: "https://inside.example.com/ours-closed",
        private: true,
        awsRegion: "us-east-1",
      },
    ]);
    expect(JSON.parse(String(vars["PEERS"]))).toEqual(CONFIG.pops.map(({ name, url }) => ({ name, url })));
    expect(vars).toMatchObject({ PUBLISHER_KEYS: JSON.stringify([KEY]), UNSIGNED: "false" });
    expect(JSON.parse(String(vars["SITE"]))).toEqual({ prefix: "web/", index: "index.html", notFound: "404.html" });
    expect(r2_buckets).toEqual([{ binding: "BUCKET_R2", bucket_name: "ours-r2" }]);
  }
  const ids = [fra, sin].map(({ ratelimits }) => (ratelimits as { namespace_id: string }[])[0]!.namespace_id);
  expect(new Set(ids).size).toBe(2);
});

test("has the Durable Objects, triggers, flags and dates of the repository's own wrangler.toml", async () => {
  await init();
  const own = unstable_readConfig({ config: join(ROOT, "wrangler.toml"), env: "fra" });
  const made = read("fra");
  for (const field of [
    "compatibility_date",
    "compatibility_flags",
    "triggers",
    "migrations",
    "observability",
    "durable_objects",
    "version_metadata",
    "placement",
  ] as const) {
    expect(made[field], field).toEqual(own[field]);
  }
  const classes = (config: string): unknown =>
    unstable_getMiniflareWorkerOptions(config, "fra").workerOptions.durableObjects;
  expect(classes(file)).toEqual(classes(join(ROOT, "wrangler.toml")));
  for (const name of Object.keys(made.vars)) expect(own.vars, name).toHaveProperty(name);
});

test("run again, it takes up the configuration and keeps KV ids, tuned variables, limits and what was added", async () => {
  await init();
  await writeFile(
    file,
    (await readFile(file, "utf8")).replace('"binding": "CHUNKS"', `"binding": "CHUNKS", "id": "${ID}"`),
  );
  await patchVariables(file, "fra", { CACHE_BYTES: "5", MANIFEST_TTL_SECONDS: "5" });
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace('"name": "agarose-fra",', '"name": "mine-fra", "routes": ["fra.example.com/*"],'));
  const before = read("fra");
  const [frankfurt] = CONFIG.regions;
  const pops = [{ name: "iad", url: "https://iad.example.com", placement: "aws:us-east-1" }, CONFIG.pops[0]];
  await configure({
    ...CONFIG,
    regions: [frankfurt],
    pops,
    code: { k: 1, m: 0 },
    survive: { regions: 0, providers: 0 },
  });
  const { stdout, code } = await init("--json");
  expect(code).toBe(0);
  expect(JSON.parse(stdout.toString())).toEqual({
    files: [{ path: "wrangler.jsonc", outcome: "updated" }],
    leftOut: ["sin"],
  });
  const [iad, fra] = await readEnvironments(file);
  expect([iad!.name, fra!.name, fra!.worker]).toEqual(["iad", "fra", "mine-fra"]);
  expect(fra!.namespaces).toEqual([{ binding: "CHUNKS", id: ID }]);
  expect(fra!.vars).toMatchObject({ CACHE_BYTES: "5", MANIFEST_TTL_SECONDS: "5", POP: "fra" });
  expect(JSON.parse(String(fra!.vars["REGIONS"]))).toHaveLength(1);
  expect(JSON.parse(String(fra!.vars["PEERS"]))).toHaveLength(2);
  const { routes, ratelimits } = read("fra");
  expect([routes, ratelimits]).toEqual([["fra.example.com/*"], before.ratelimits]);
  expect(read("iad").ratelimits).not.toEqual(ratelimits);
  expect(JSON.parse((await init("--json")).stdout.toString()).files).toEqual([
    { path: "wrangler.jsonc", outcome: "kept" },
  ]);
});

test('a PoP with PEERS = "off" stays alone, and a deployment writes variables into the file', async () => {
  await init();
  await patchVariables(file, "sin", { PEERS: "off" });
  await init();
  expect(read("sin").vars["PEERS"]).toBe("off");
  expect(JSON.parse(String(read("fra").vars["PEERS"])).map(({ name }: { name: string }) => name)).toEqual([
    "fra",
    "home",
  ]);
  expect(await readFile(file, "utf8"), "comments stay").toMatch(/^\/\/ Made by `agarose init --worker`/);
});

test("queries stay out of the logs where Wrangler can do that, and SUBREQUESTS_MAX becomes the platform's limit", async () => {
  await init();
  const schema = await readFile(join(ROOT, "node_modules/wrangler/config-schema.json"), "utf8");
  expect(await readFile(file, "utf8")).toMatch(
    schema.includes("redact_query_string") ? /"redact_query_string": true/ : /^(?!.*redact_query_string)/s,
  );
  expect(read("fra")).toMatchObject({ upload_source_maps: true, limits: undefined });
  await patchVariables(file, "fra", { SUBREQUESTS_MAX: "50000" });
  expect((await init()).code).toBe(0);
  expect(read("fra").limits).toEqual({ subrequests: 50_000 });
  expect(read("sin").limits).toBeUndefined();
});

test("another's wrangler.jsonc is neither merged nor replaced without --force", async () => {
  await writeFile(file, '{ "name": "blog" }');
  const refused = await init();
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("--force replaces it")]);
  expect(await readFile(file, "utf8")).toBe('{ "name": "blog" }');
  expect((await init("--force")).code).toBe(0);
  expect(read("fra").name).toBe("agarose-fra");
});

test("--everywhere writes one Worker without a place or peers, and it stays that when run again", async () => {
  const pops = [{ name: "world", url: "https://world.example.com" }, CONFIG.pops[2]];
  await configure({ ...CONFIG, pops });
  expect((await init("--everywhere")).code).toBe(0);
  await patchVariables(file, "world", { CACHE_BYTES: "5" });
  expect((await init()).code).toBe(0);
  const { placement, vars } = read("world");
  expect(placement).toBeUndefined();
  expect(vars).toMatchObject({ POP: "world", EVERYWHERE: "true", PEERS: "off", CACHE_BYTES: "5" });
  expect(vars).not.toHaveProperty("LOCATION");
  const run = await runAgarose(["deploy", "--dry-run", "--json"], folder);
  expect(run.code).toBe(0);
  const { steps } = JSON.parse(run.stdout.toString()) as { steps: { step: { kind: string } }[] };
  expect(steps.map(({ step }) => step.kind)).toEqual(["build", "deploy"]);
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace('"EVERYWHERE"', '"LOCATION": "weur", "EVERYWHERE"'));
  const contradictory = await runAgarose(["deploy", "--dry-run"], folder);
  expect([contradictory.code, contradictory.stderr]).toEqual([
    2,
    expect.stringContaining("and a placement or LOCATION"),
  ]);
  await configure(CONFIG);
  const two = await init("--everywhere");
  expect([two.code, two.stderr]).toEqual([2, expect.stringContaining("`pops` has fra, sin: keep one")]);
});

test.each<[string, object, string]>([
  ["no PoPs", { pops: [] }, "no PoP to write"],
  ["PoPs on Node alone", { pops: [CONFIG.pops[2]] }, "no PoP to write"],
  [
    "no placement",
    { pops: [{ name: "fra", url: "https://x.example" }] },
    '"placement": "aws:eu-central-1", or aws:us-east-1',
  ],
  [
    "a placement of which no location follows",
    { pops: [{ name: "fra", url: "https://x.example", placement: "gcp:europe-west3" }] },
    'add "location", one of wnam, ',
  ],
  ["an unknown location", { pops: [{ ...CONFIG.pops[0], location: "mars" }] }, '"mars"'],
])("%s is refused, with what to write", async (_name, more, message) => {
  await configure({ ...CONFIG, ...more });
  const { code, stderr } = await init();
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
});

test("--analytics binds one data set to every PoP, which a later run keeps", async () => {
  await init();
  expect(read("fra").analytics_engine_datasets).toEqual([]);
  await init("--analytics");
  for (const again of [false, true]) {
    if (again) await init();
    for (const pop of ["fra", "sin"]) {
      expect(read(pop).analytics_engine_datasets).toEqual([{ binding: "ANALYTICS", dataset: "agarose" }]);
      const { workerOptions } = unstable_getMiniflareWorkerOptions(file, pop);
      expect(Object.keys(workerOptions.analyticsEngineDatasets ?? {})).toEqual(["ANALYTICS"]);
    }
  }
  expect((await runAgarose(["init", "--analytics"], folder)).code).toBe(2);
});

test("--dev-vars gives Wrangler the buckets of another configuration, and no peers", async () => {
  await init();
  await writeFile(join(folder, "other.json"), JSON.stringify({ ...CONFIG, regions: [CONFIG.regions[0]] }));
  const args = ["init", "--dev-vars", "--config", "other.json"];
  expect(await runAgarose(args, folder)).toMatchObject({ code: 0 });
  const { workerOptions } = unstable_getMiniflareWorkerOptions(file, "fra");
  const bindings = workerOptions.bindings as Record<string, string>;
  expect(JSON.parse(bindings["REGIONS"]!)).toMatchObject([{ name: "frankfurt" }]);
  expect(bindings).toMatchObject({
    POP: "fra",
    PEERS: "off",
    FILL_CLIENTS_MIN: "1",
    PUBLISHER_KEYS: JSON.stringify([KEY]),
    UNSIGNED: "false",
  });
  expect(await runAgarose(args, folder), "it replaces its own").toMatchObject({ code: 0 });

  await writeFile(join(folder, ".dev.vars"), "OWN=1\n");
  expect(await runAgarose(args, folder)).toMatchObject({ code: 2, stderr: expect.stringContaining("--force") });
  expect(await readFile(join(folder, ".dev.vars"), "utf8")).toBe("OWN=1\n");
  expect(await runAgarose([...args, "--force"], folder)).toMatchObject({ code: 0 });
});
