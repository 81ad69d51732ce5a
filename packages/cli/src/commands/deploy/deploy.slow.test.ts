/**
 * `agarose deploy`: dry runs with the real Wrangler, and the rest with one of the test's own, since Cloudflare's API
 * needs an account.
 */
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { peerSteps, planDeployment, trustProblems, withNamespaceId, type PopEnvironment } from "./deployment.ts";
import { runDeployment, withVariables } from "./run-deployment.ts";
import { readEnvironments, type Wrangler } from "./wrangler.ts";
import { runAgarose, spawnAgarose } from "../../../test/world.ts";

const ROOT = fileURLToPath(new URL("../../../../..", import.meta.url));
const CONFIG = join(ROOT, "wrangler.toml");
const ID = "0123456789abcdef0123456789abcdef";

let folder: string;
let config: string;
/** A configuration of the command line that has a public key. */
let signed: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-deploy-test-"));
  config = join(folder, "wrangler.toml");
  await cp(CONFIG, config);
  signed = join(folder, "signed.config.json");
  const region = { name: "a", provider: "a", endpoint: "https://a.example", bucket: "aaa" };
  const publicKeys = JSON.parse(TRUST.PUBLISHER_KEYS) as string[];
  await writeFile(signed, JSON.stringify({ regions: [region], code: { k: 1, m: 0 }, publicKeys }));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A fake Wrangler with an account: remembers namespaces and commands; fails where the test says so. */
class FakeWrangler {
  readonly calls: { args: readonly string[]; input: string | undefined }[] = [];
  readonly namespaces: { id: string; title: string }[] = [{ id: "f".repeat(32), title: "of-something-else" }];
  /** Names of the secrets, by PoP; PoPs without an entry are not deployed. */
  readonly secrets = new Map<string, Set<string>>();
  fails = (_args: readonly string[]): boolean => false;
  /** Whether the file has no id for the cache of a PoP. */
  provisions = (_pop: string): boolean => false;

  readonly run: Wrangler = async (args, input) => {
    this.calls.push({ args, input });
    const pop = args[args.indexOf("--env") + 1]!;
    const isDeployment = args[0] === "deploy" && !args.includes("--dry-run");
    // As Wrangler does: a namespace first for a binding without an id, and then the Worker.
    if (isDeployment && this.provisions(pop) && !this.secrets.has(pop)) {
      const title = `agarose-${pop}-chunks`;
      if (this.namespaces.some((one) => one.title === title)) {
        return {
          code: 1,
          stdout: "",
          stderr: "a namespace with this account ID and title already exists [code: 10014]",
        };
      }
      this.#create(title);
    }
    if (this.fails(args)) return { code: 1, stdout: "", stderr: "Authentication error [code: 10000]" };
    if (isDeployment && !this.secrets.has(pop)) this.secrets.set(pop, new Set());
    if (args[0] === "secret") return this.#secret(args[1]!, pop, input);
    if (args.includes("list")) return { code: 0, stdout: JSON.stringify(this.namespaces), stderr: "" };
    if (args.includes("create")) this.#create(args[3]!);
    return { code: 0, stdout: "", stderr: "" };
  };

  #create(title: string): void {
    const digit = this.namespaces.length.toString(16);
    this.namespaces.push({ id: digit.repeat(32), title });
  }

  #secret(verb: string, pop: string, input = "{}"): { code: number; stdout: string; stderr: string } {
    const own = this.secrets.get(pop);
    if (!own) return { code: 1, stdout: "", stderr: "This Worker does not exist on your account." };
    for (const name of Object.keys(JSON.parse(input) as object)) own.add(name);
    const listed = [...own].map((name) => ({ name, type: "secret_text" }));
    return { code: 0, stdout: verb === "list" ? JSON.stringify(listed) : "", stderr: "" };
  }
}

const TRUST = { PUBLISHER_KEYS: JSON.stringify([`ed25519:${"A".repeat(43)}=`]), UNSIGNED: "false" };
const SECRETS = { ADMIN_TOKEN: "sesame-sesame-sesame" };

async function deploy(
  wrangler: FakeWrangler,
  pops?: string[],
  addresses: Parameters<typeof peerSteps>[2] = [],
): Promise<string[]> {
  const chosen = await readEnvironments(config, pops);
  const names = chosen.map(({ name }) => name);
  const peers = peerSteps(await readEnvironments(config), names, addresses, false);
  const steps = planDeployment(chosen, Object.keys(SECRETS), peers, TRUST);
  const taken = await runDeployment(steps, {
    config,
    wrangler: wrangler.run,
    secrets: SECRETS,
    dryRun: false,
    newSecret: () => `key ${wrangler.calls.length}`,
    onStep() {},
  });
  return taken.map(({ step }) => `${step.kind} ${step.pop}`);
}

describe("--dry-run", () => {
  test("builds every PoP for real, says what would be done, and changes nothing", async () => {
    const before = await readFile(CONFIG, "utf8");
    const run = await spawnAgarose(
      ["deploy", "--dry-run", "--json", "--config", signed, "--wrangler", CONFIG, "--pops", "fra,lhr"],
      { cwd: ROOT },
    );
    expect(run.stderr).toContain("fra: build");
    expect(run.code).toBe(0);
    const { steps } = JSON.parse(run.stdout.toString()) as { steps: { command: string; outcome: string }[] };
    expect(steps.map(({ command, outcome }) => [outcome, command.replace(CONFIG, "C")])).toEqual([
      ["planned", "wrangler kv namespace create agarose-fra-chunks --config C"],
      ["planned", "wrangler kv namespace create agarose-lhr-chunks --config C"],
      ["planned", "write PUBLISHER_KEYS and UNSIGNED of [env.fra.vars] into C"],
      ["planned", "write PUBLISHER_KEYS and UNSIGNED of [env.lhr.vars] into C"],
      ["done", "wrangler deploy --dry-run --env fra --config C"],
      ["done", "wrangler deploy --dry-run --env lhr --config C"],
      ["planned", "wrangler deploy --env fra --config C"],
      ["planned", "wrangler deploy --env lhr --config C"],
    ]);
    expect(await readFile(CONFIG, "utf8")).toBe(before);
  });

  test("names secrets and never shows them", async () => {
    const args = ["deploy", "--dry-run", "--config", signed, "--wrangler", CONFIG, "--pops", "fra", "--secrets", "-"];
    const stdin = Buffer.from(JSON.stringify({ ...SECRETS, BUCKET_CREDENTIALS: { "*": { accessKeyId: "hush" } } }));
    const run = await spawnAgarose(args, { cwd: ROOT, stdin });
    expect(run.code).toBe(0);
    expect(run.stdout.toString()).toContain("# stdin: ADMIN_TOKEN, BUCKET_CREDENTIALS");
    expect(run.stdout.toString() + run.stderr).not.toMatch(/sesame|hush/);
  });

  test("a Worker that does not build fails with Wrangler's words", async () => {
    await writeFile(config, (await readFile(config, "utf8")).replace("packages/worker/src/index.ts", "missing.ts"));
    const run = await spawnAgarose(["deploy", "--dry-run", "--config", signed, "--wrangler", config, "--pops", "fra"], {
      cwd: ROOT,
    });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("missing.ts");
  });
});

describe("with an account", () => {
  test("creates namespaces, writes their ids, builds every PoP before it deploys one, and passes secrets by stdin", async () => {
    const wrangler = new FakeWrangler();
    expect(await deploy(wrangler, ["fra", "lhr"])).toEqual([
      "namespace fra",
      "namespace lhr",
      "keys fra",
      "keys lhr",
      "build fra",
      "build lhr",
      "deploy fra",
      "secrets fra",
      "deploy lhr",
      "secrets lhr",
    ]);
    const [fra, lhr, iad] = await readEnvironments(config);
    expect([fra, lhr].map((pop) => pop!.namespaces[0]!.id)).toEqual(["1".repeat(32), "2".repeat(32)]);
    expect(iad!.namespaces[0]!.id).toContain("iad");
    for (const pop of [fra, lhr]) expect(pop!.vars).toMatchObject(TRUST);
    expect(iad!.vars).toMatchObject({ PUBLISHER_KEYS: "[]" });
    expect(fra!.vars["REGIONS"], "the rest stays").toBe(iad!.vars["REGIONS"]);
    const bulk = wrangler.calls.filter(({ args }) => args[1] === "bulk");
    expect(bulk.map(({ input }) => JSON.parse(input!) as unknown)).toEqual([SECRETS, SECRETS]);
    expect(wrangler.calls.some(({ args }) => args.join(" ").includes("sesame"))).toBe(false);
  });

  test("a second deployment makes no namespace, and one that was cut off finds the one it made", async () => {
    const wrangler = new FakeWrangler();
    await deploy(wrangler, ["fra"]);
    expect(await deploy(wrangler, ["fra"])).toEqual(["build fra", "deploy fra", "secrets fra"]);
    await cp(CONFIG, config);
    await deploy(wrangler, ["fra"]);
    expect(wrangler.namespaces.filter(({ title }) => title === "agarose-fra-chunks")).toHaveLength(1);
  });

  test("a binding without an id is left to Wrangler, and the file stays as it is", async () => {
    await writeFile(config, (await readFile(config, "utf8")).replace(', id = "00000000000000000000000000000fra"', ""));
    const wrangler = new FakeWrangler();
    wrangler.provisions = (pop) => pop === "fra";
    await deploy(wrangler, ["fra"]);
    const before = await readFile(config, "utf8");
    expect(await deploy(wrangler, ["fra"])).toEqual(["build fra", "deploy fra", "secrets fra"]);
    expect(await readFile(config, "utf8")).toBe(before);
    const made = wrangler.namespaces.filter(({ title }) => title === "agarose-fra-chunks");
    expect(made).toHaveLength(1);
    expect(wrangler.calls.some(({ args }) => args[0] === "kv")).toBe(false);
  });

  test("where Cloudflare refuses a Worker whose namespace Wrangler has made, the error names the id to write", async () => {
    const without = (await readFile(config, "utf8")).replace(', id = "00000000000000000000000000000fra"', "");
    await writeFile(config, without);
    const wrangler = new FakeWrangler();
    wrangler.provisions = (pop) => pop === "fra";
    wrangler.fails = (args) => args[0] === "deploy" && !args.includes("--dry-run");
    const advice = `write "id": "${"1".repeat(32)}" to CHUNKS of fra`;
    await expect(deploy(wrangler, ["fra"])).rejects.toThrow(advice);
    wrangler.fails = () => false;
    await expect(deploy(wrangler, ["fra"]), "the next run, too").rejects.toThrow(advice);
    const written = await readFile(config, "utf8");
    await writeFile(config, written.replace('"CHUNKS" }', `"CHUNKS", id = "${"1".repeat(32)}" }`));
    wrangler.provisions = () => false;
    expect(await deploy(wrangler, ["fra"])).toEqual(["build fra", "deploy fra", "secrets fra"]);
  });

  test("a step that fails ends it, with Wrangler's words; the PoPs before it remain", async () => {
    const wrangler = new FakeWrangler();
    wrangler.fails = (args) => args[0] === "deploy" && !args.includes("--dry-run") && args.includes("lhr");
    const failing = deploy(wrangler, ["fra", "lhr", "iad"]);
    await expect(failing).rejects.toMatchObject({
      code: "STORE_FAILED",
      message: expect.stringContaining("Authentication error"),
      details: { pop: "lhr", step: "deploy", exitCode: 1 },
    });
    const deployed = wrangler.calls.filter(({ args }) => args[0] === "deploy" && !args.includes("--dry-run"));
    expect(deployed.map(({ args }) => args[2])).toEqual(["fra", "lhr"]);
  });
});

describe("cooperation", () => {
  const addresses = ["fra", "lhr", "iad"].map((name) => ({ name, url: `https://${name}.example` }));
  const listOf = async (pop: string): Promise<unknown> =>
    (await readEnvironments(config, [pop]))[0]!.vars["PEERS"] as string;
  const keysSet = ({ calls }: FakeWrangler): [pop: string, key: string][] =>
    calls
      .filter(({ args, input }) => args[1] === "bulk" && input!.includes("PEER_KEY"))
      .map(({ args, input }) => [args[3]!, (JSON.parse(input!) as { PEER_KEY: string }).PEER_KEY]);

  test("a deployment writes the list of PoPs into every environment and gives all one new key", async () => {
    const wrangler = new FakeWrangler();
    const steps = await deploy(wrangler, undefined, addresses);
    expect(steps.filter((step) => step.startsWith("peer"))).toEqual([
      "peers fra",
      "peers lhr",
      "peers iad",
      "peer-key fra,lhr,iad",
    ]);
    for (const { name } of addresses) expect(JSON.parse(String(await listOf(name)))).toEqual(addresses);
    const keys = keysSet(wrangler);
    expect(keys.map(([pop]) => pop)).toEqual(["fra", "lhr", "iad"]);
    expect(new Set(keys.map(([, key]) => key)).size).toBe(1);
  });

  test("a second deployment changes neither list nor key", async () => {
    const wrangler = new FakeWrangler();
    await deploy(wrangler, undefined, addresses);
    const text = await readFile(config, "utf8");
    const before = wrangler.calls.length;
    expect((await deploy(wrangler, undefined, addresses)).filter((step) => step.startsWith("peers"))).toEqual([]);
    expect(await readFile(config, "utf8")).toBe(text);
    expect(wrangler.calls.slice(before).some(({ input }) => input?.includes("PEER_KEY"))).toBe(false);
  });

  test("a PoP that joins gets a key with those that are deployed already, and not one that is not", async () => {
    const wrangler = new FakeWrangler();
    await deploy(wrangler, ["fra"], addresses);
    expect(keysSet(wrangler).map(([pop]) => pop)).toEqual(["fra"]);
    await deploy(wrangler, ["lhr"], addresses);
    const keys = keysSet(wrangler).slice(1);
    expect(keys.map(([pop]) => pop)).toEqual(["lhr", "fra"]);
    expect(new Set(keys.map(([, key]) => key)).size).toBe(1);
  });

  test('PEERS = "off" keeps a PoP on its own and off the list of the others', async () => {
    const text = await readFile(config, "utf8");
    await writeFile(config, withVariables(text, "lhr", { PEERS: "off" }).replace(/^PEERS = 'off'$/m, 'PEERS = "off"'));
    const wrangler = new FakeWrangler();
    await deploy(wrangler, undefined, addresses);
    expect(await listOf("lhr")).toBe("off");
    expect(JSON.parse(String(await listOf("fra")))).toEqual(addresses.filter(({ name }) => name !== "lhr"));
    expect(keysSet(wrangler).map(([pop]) => pop)).toEqual(["fra", "iad"]);
  });

  test("one PoP, or a configuration without PoPs, cooperates with none, and the second is said", async () => {
    const all = await readEnvironments(config);
    const names = all.map(({ name }) => name);
    expect(peerSteps(all.slice(0, 1), ["fra"], [], false)).toEqual({ lists: [], keys: [], warnings: [] });
    const { lists, keys, warnings } = peerSteps(all, names, [], false);
    expect([lists, keys]).toEqual([[], []]);
    expect(warnings).toEqual([expect.stringContaining("fra, lhr, iad will not cooperate")]);
  });

  test("a key that is given is set as given", async () => {
    const all = await readEnvironments(config);
    expect(peerSteps(all, ["fra"], addresses, true)).toMatchObject({ keys: [], lists: [{}, {}, {}] });
  });

  test("variables replace values of any form, and keep the rest, at the end of a file too", () => {
    const toml = '[env.a.vars]\nUNSIGNED = true # for now\n  PEERS = "off"\nLIST = [\n[1],\n]\n[env.b.vars]';
    const written = withVariables(toml, "a", { UNSIGNED: "false", PEERS: "[]", NEW: "1" });
    expect(written).toBe(
      "[env.a.vars]\nNEW = '1'\nUNSIGNED = 'false' # for now\nPEERS = '[]'\nLIST = [\n[1],\n]\n[env.b.vars]",
    );
    expect(withVariables(toml, "b", { PEERS: "[]" })).toBe(`${toml}\nPEERS = '[]'`);
    expect(() => withVariables(toml, "a", { PEERS: "it's" })).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID" }),
    );
  });

  test("a list is written over one of several lines, or added, in the section of its PoP alone", () => {
    const toml = "[env.a.vars]\nPOP = \"a\"\nPEERS = '''\n[\n[x]\n]'''\nX = 1\n[env.b.vars]\nPOP = \"b\"\n";
    expect(withVariables(toml, "a", { PEERS: "[1]" })).toBe(
      '[env.a.vars]\nPOP = "a"\nPEERS = \'[1]\'\nX = 1\n[env.b.vars]\nPOP = "b"\n',
    );
    expect(withVariables(toml, "b", { PEERS: "[1]" })).toBe(toml.replace('POP = "b"', "PEERS = '[1]'\nPOP = \"b\""));
    expect(() => withVariables(toml, "c", { PEERS: "[1]" })).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID" }),
    );
  });
});

describe("refused", () => {
  const pop: PopEnvironment = {
    name: "fra",
    worker: "agarose-fra",
    namespaces: [{ binding: "CHUNKS", id: ID }],
    crons: ["* * * * *"],
    durableObjects: ["REQUEST_MONITOR", "POP_STATE", "PEER_STATE"],
    placement: "aws:eu-central-1",
    vars: { POP: "fra", REGIONS: "[]", LOCATION: "weur" },
  };
  test.each<[string, readonly PopEnvironment[], string]>([
    ["no KV namespace", [{ ...pop, namespaces: [] }], "no KV namespace CHUNKS"],
    ["no cron", [{ ...pop, crons: [] }], "no cron"],
    ["a Durable Object too few", [{ ...pop, durableObjects: ["POP_STATE"] }], "REQUEST_MONITOR, PEER_STATE"],
    ["another name", [{ ...pop, vars: { ...pop.vars, POP: "lhr" } }], 'calls the PoP "lhr"'],
    ["no regions", [{ ...pop, vars: { POP: "fra" } }], "no REGIONS"],
    ["no placement", [{ ...pop, placement: undefined }], "no placement in [env.fra]"],
    ["no location of its Durable Objects", [{ ...pop, vars: { ...pop.vars, LOCATION: "" } }], "no LOCATION"],
    ["one cache for two", [pop, { ...pop, name: "lhr", vars: { ...pop.vars, POP: "lhr" } }], "the same KV id"],
  ])("%s", (_name, pops, message) => {
    expect(() => planDeployment(pops, [])).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", message: expect.stringContaining(message) }),
    );
  });

  test("PoPs of which nothing says whose manifests to use, with how to make a key", async () => {
    const none = { ...pop, vars: { ...pop.vars, PUBLISHER_KEYS: "[]", UNSIGNED: "false" } };
    expect(trustProblems([none], undefined)).toEqual([expect.stringContaining("`agarose keys new`")]);
    expect(trustProblems([none], TRUST)).toEqual([]);
    expect(trustProblems([{ ...pop, vars: { ...TRUST } }], undefined)).toEqual([]);
    expect(trustProblems([{ ...pop, vars: { UNSIGNED: "true" } }], undefined)).toEqual([]);
    const run = await runAgarose(["deploy", "--wrangler", config, "--pops", "fra"], folder, {
      CLOUDFLARE_API_TOKEN: "x",
    });
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining("`agarose keys new`")]);
  });

  test("public keys for a file without the PoP's variables, with what to write there", () => {
    expect(withVariables("[env.fra.vars]\nA = 1\n[env.lhr]", "fra", TRUST).split("\n")).toHaveLength(5);
    expect(() => withVariables('{ "env": {} }', "fra", TRUST)).toThrow("PUBLISHER_KEYS = '[\"ed25519:");
  });

  test("a placeholder that occurs twice", () => {
    expect(withNamespaceId("id = X", "X", ID)).toBe(`id = ${ID}`);
    expect(() => withNamespaceId("X and X", "X", ID)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
  });

  test.each([
    [["--pops", "ams"], {}, "no [env.ams]: it has fra, lhr, iad"],
    [["--secrets", "nowhere.json"], {}, "nowhere.json does not exist"],
    [["--wrangler", "nowhere.toml"], {}, "nowhere.toml"],
  ])("%j", async (args, env, message) => {
    const run = await runAgarose(["deploy", "--dry-run", "--wrangler", CONFIG, ...args], ROOT, env);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain(message);
  });

  test("a secret that PoPs do not have", async () => {
    const path = join(folder, "secrets.json");
    await writeFile(path, JSON.stringify({ PASSWORD: "hush" }));
    const run = await runAgarose(["deploy", "--dry-run", "--wrangler", CONFIG, "--secrets", path], ROOT);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain("PASSWORD is not a secret");
    expect(run.stderr).not.toContain("hush");
  });
});
