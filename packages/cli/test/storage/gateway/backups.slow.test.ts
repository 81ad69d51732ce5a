/**
 * Programs that keep their own data in a bucket, through whole cycles at the gateway: backups by restic, images of a
 * docker registry, the state of Terraform, and copies by s5cmd and s3cmd. Regions die in the middle, because that is
 * what the gateway is for.
 */
import { execFile, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test, vi, type TestContext } from "vitest";
import { freePort } from "@agarose/dev-world/free-port";
import { GATEWAY_KEYS, startGatewayWorld, type GatewayWorld } from "../../gateway.ts";

const run = promisify(execFile);
let started: GatewayWorld;
beforeAll(async () => {
  started = await startGatewayWorld({ stripeBytes: 1024 * 1024 });
});
afterAll(() => started.close());

/** Skips the test where the program is absent, and says so. */
async function need(program: string, context: TestContext, args = ["version"]): Promise<void> {
  const isThere = await run(program, args).then(
    () => true,
    () => false,
  );
  context.skip(!isThere, `${program} is not installed: install it to run this test`);
}

/** Runs `work` while a region answers nothing, and asserts that it was asked. */
async function whileDown<T>(region: string, work: () => Promise<T>): Promise<T> {
  const { world } = started;
  world.fired.delete(region);
  world.faults.set(region, (request) => {
    request.socket.destroy();
    return true;
  });
  try {
    return await work();
  } finally {
    world.faults.delete(region);
    expect(world.fired.get(region), `${region} was down while it was asked`).toBeGreaterThan(0);
  }
}

function clientEnvironment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env["PATH"],
    HOME: started.world.dir,
    AWS_ACCESS_KEY_ID: GATEWAY_KEYS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: GATEWAY_KEYS.secretAccessKey,
    AWS_REGION: "us-east-1",
  };
}

/** Every file below `folder` by its path, with the SHA-256 of what it has. */
async function contentsOf(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const hashed = files.toSorted().map(async (path) => {
    return [
      path.slice(folder.length),
      createHash("sha256")
        .update(await readFile(path))
        .digest("hex"),
    ];
  });
  return Object.fromEntries(await Promise.all(hashed)) as Record<string, string>;
}

/** A folder with files of many sizes. */
async function sampleFolder(): Promise<string> {
  const folder = await mkdtemp(join(started.world.dir, "sample-"));
  await mkdir(join(folder, "sub/deeper"), { recursive: true });
  const sizes = { empty: 0, "sub/small.txt": 3_000, "sub/deeper/medium": 700_000, "large.bin": 9 * 1024 * 1024 };
  for (const [path, bytes] of Object.entries(sizes)) await writeFile(join(folder, path), randomBytes(bytes));
  return folder;
}

test("restic backs up, checks every byte and restores with a region down, and prunes what it forgets", async (context) => {
  await need("restic", context);
  const { world, gateway } = started;
  const env = {
    ...clientEnvironment(),
    RESTIC_REPOSITORY: `s3:${gateway.url}/agarose/backups`,
    RESTIC_PASSWORD: "a test's own password",
    RESTIC_CACHE_DIR: join(world.dir, "restic-cache"),
  };
  const restic = async (...args: string[]): Promise<string> => (await run("restic", args, { env })).stdout;
  const folder = await sampleFolder();
  const first = await contentsOf(folder);
  await restic("init");
  await restic("backup", folder);
  await cp(join(folder, "large.bin"), join(folder, "sub/copy.bin"));
  await rm(join(folder, "sub/small.txt"));
  const second = await contentsOf(folder);
  await whileDown("dublin", () => restic("backup", folder));
  await whileDown("tokyo", () => restic("check", "--read-data", "--no-cache"));
  const snapshots = JSON.parse(await restic("snapshots", "--json")) as { id: string }[];
  expect(snapshots).toHaveLength(2);
  const restoreOf = async (id: string): Promise<Record<string, string>> => {
    const target = await mkdtemp(join(world.dir, "restored-"));
    await whileDown("frankfurt", () => restic("restore", id, "--target", target, "--no-cache"));
    return contentsOf(join(target, folder));
  };
  expect(await restoreOf(snapshots[0]!.id)).toEqual(first);
  await restic("forget", "--keep-last", "1", "--prune");
  expect(JSON.parse(await restic("snapshots", "--json"))).toHaveLength(1);
  // Its old versions list by ListObjects, and this one does when it is asked to.
  await restic("check", "--read-data", "--no-cache", "-o", "s3.list-objects-v1=true");
  expect(await restoreOf("latest")).toEqual(second);
});

test("a docker registry keeps an image whose layers are uploaded in pieces, and serves it with a region down", async (context) => {
  await need("docker-registry", context, ["--version"]);
  const { world, gateway } = started;
  const port = await freePort();
  const config = join(world.dir, "registry.json");
  const s3 = {
    accesskey: GATEWAY_KEYS.accessKeyId,
    secretkey: GATEWAY_KEYS.secretAccessKey,
    region: "us-east-1",
    regionendpoint: gateway.url,
    bucket: "agarose",
    rootdirectory: "/registry",
    secure: false,
    v4auth: true,
    chunksize: 5 * 1024 * 1024,
  };
  // JSON is YAML. Blobs go through the registry: its clients do not know the gateway.
  const settings = { version: 0.1, storage: { s3, redirect: { disable: true } }, http: { addr: `127.0.0.1:${port}` } };
  await writeFile(config, JSON.stringify(settings));
  const server = spawn("docker-registry", ["serve", config], { env: clientEnvironment(), stdio: "ignore" });
  try {
    const url = `http://127.0.0.1:${port}/v2`;
    await vi.waitFor(async () => expect((await fetch(`${url}/`)).status).toBe(200), { timeout: 60_000, interval: 100 });
    const layer = randomBytes(12 * 1024 * 1024);
    const digestOf = (bytes: Uint8Array): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    const push = async (bytes: Uint8Array<ArrayBuffer>): Promise<void> => {
      const begun = await fetch(`${url}/app/blobs/uploads/`, { method: "POST" });
      let location = begun.headers.get("location")!;
      const half = Math.ceil(bytes.length / 2);
      for (const start of [0, half]) {
        const body = bytes.slice(start, start + half);
        const headers = {
          "content-range": `${start}-${start + body.length - 1}`,
          "content-type": "application/octet-stream",
        };
        const sent = await fetch(location, { method: "PATCH", headers, body });
        expect(sent.status, await sent.text()).toBe(202);
        location = sent.headers.get("location")!;
      }
      const done = new URL(location);
      done.searchParams.set("digest", digestOf(bytes));
      const put = await fetch(done, { method: "PUT" });
      expect(put.status, await put.text()).toBe(201);
    };
    const image = Buffer.from(
      JSON.stringify({ architecture: "amd64", os: "linux", rootfs: { type: "layers", diff_ids: [] } }),
    );
    await push(Buffer.from(layer));
    await push(image);
    const mediaType = "application/vnd.oci.image.manifest.v1+json";
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType,
      config: { mediaType: "application/vnd.oci.image.config.v1+json", digest: digestOf(image), size: image.length },
      layers: [{ mediaType: "application/vnd.oci.image.layer.v1.tar", digest: digestOf(layer), size: layer.length }],
    });
    const tagged = await fetch(`${url}/app/manifests/1.0`, {
      method: "PUT",
      headers: { "content-type": mediaType },
      body: manifest,
    });
    expect(tagged.status, await tagged.text()).toBe(201);
    await whileDown("virginia", async () => {
      const pulled = await fetch(`${url}/app/manifests/1.0`, { headers: { accept: mediaType } });
      expect(await pulled.text()).toBe(manifest);
      // As docker does, which asks again where a registry answers that it cannot for now.
      const pull = async (): Promise<void> => {
        const blob = await fetch(`${url}/app/blobs/${digestOf(layer)}`);
        const bytes = new Uint8Array(await blob.arrayBuffer());
        expect([blob.status, bytes.length]).toEqual([200, layer.length]);
        expect(digestOf(bytes)).toBe(digestOf(layer));
      };
      await vi.waitFor(pull, { timeout: 60_000, interval: 500 });
    });
    expect(await (await fetch(`${url}/app/tags/list`)).json()).toEqual({ name: "app", tags: ["1.0"] });
  } finally {
    server.kill();
  }
});

test("s5cmd copies a folder with a region down, lists it, reads it back and deletes it", async (context) => {
  await need("s5cmd", context);
  const { world, gateway } = started;
  const s5cmd = async (...args: string[]): Promise<string> =>
    (await run("s5cmd", ["--endpoint-url", gateway.url, ...args], { env: clientEnvironment() })).stdout;
  const folder = await sampleFolder();
  await whileDown("sydney", () => s5cmd("cp", "--part-size", "5", `${folder}/`, "s3://agarose/s5cmd/"));
  expect((await s5cmd("ls", "s3://agarose/s5cmd/*")).trim().split("\n")).toHaveLength(4);
  const back = await mkdtemp(join(world.dir, "s5cmd-"));
  await s5cmd("cp", "s3://agarose/s5cmd/*", `${back}/`);
  expect(await contentsOf(back)).toEqual(await contentsOf(folder));
  await s5cmd("rm", "s3://agarose/s5cmd/*");
  await expect(s5cmd("ls", "s3://agarose/s5cmd/*")).rejects.toThrow(/no object found/);
});

test("s3cmd syncs a folder, finds nothing to do, and reads it back", async (context) => {
  await need("s3cmd", context, ["--version"]);
  const { world, gateway } = started;
  const { host } = new URL(gateway.url);
  const common = ["--no-ssl", `--host=${host}`, `--host-bucket=${host}`, "--multipart-chunk-size-mb=5"];
  const s3cmd = async (...args: string[]): Promise<string> =>
    (await run("s3cmd", [...common, ...args], { env: clientEnvironment() })).stdout;
  const folder = await sampleFolder();
  await s3cmd("sync", `${folder}/`, "s3://agarose/s3cmd/");
  expect(await s3cmd("sync", "--dry-run", `${folder}/`, "s3://agarose/s3cmd/")).not.toContain("upload:");
  const back = await mkdtemp(join(world.dir, "s3cmd-"));
  await s3cmd("sync", "s3://agarose/s3cmd/", `${back}/`);
  expect(await contentsOf(back)).toEqual(await contentsOf(folder));
});

test("Terraform keeps its state with a region down, and of two runs at once one finds it locked", async (context) => {
  await need("terraform", context);
  const { world, gateway } = started;
  const folder = await mkdtemp(join(world.dir, "terraform-"));
  const s3 = {
    bucket: "agarose",
    key: "terraform.tfstate",
    region: "us-east-1",
    endpoints: { s3: gateway.url },
    use_path_style: true,
    use_lockfile: true,
    skip_credentials_validation: true,
    skip_region_validation: true,
    skip_requesting_account_id: true,
  };
  const write = (seconds: number): Promise<void> => {
    // While it has the state locked, a run waits here.
    const waiting = { provisioner: { "local-exec": { command: `sleep ${seconds}` } } };
    const resource = { terraform_data: { [`wait${seconds}`]: waiting } };
    const main = { terraform: { backend: { s3 } }, resource, output: { seconds: { value: seconds } } };
    return writeFile(join(folder, "main.tf.json"), JSON.stringify(main));
  };
  const env = { ...clientEnvironment(), CHECKPOINT_DISABLE: "1", TF_CLI_CONFIG_FILE: join(folder, "none") };
  await writeFile(env.TF_CLI_CONFIG_FILE, "");
  const terraform = async (...args: string[]): Promise<string> =>
    (await run("terraform", args, { cwd: folder, env })).stdout;
  await write(0);
  await terraform("init");
  await whileDown("dublin", () => terraform("apply", "-auto-approve"));
  await write(10);
  const runs = await Promise.allSettled([1, 2].map(() => terraform("apply", "-auto-approve")));
  const refused = runs.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
  expect(refused).toEqual([expect.stringMatching(/Error acquiring the state lock/)]);
  await whileDown("tokyo", async () => expect((await terraform("output", "seconds")).trim()).toBe("10"));
});
