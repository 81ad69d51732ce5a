/**
 * The surroundings of a command: proxies, few descriptors, load balancers, full folders, and names that are not text.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, unlink, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { proxiesOf } from "@agarose/storage/buckets/proxies";
import { CREDENTIALS, startTestWorld, type World } from "./world.ts";

const SCRIPT = fileURLToPath(new URL("../bin/agarose.js", import.meta.url));

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
});

afterEach(() => world.close());

/** Runs the command behind `before`, in a shell in the world's folder. */
async function shell(before: string, args: readonly string[], env: Record<string, string> = {}, stdin = "") {
  const line = `${before}; exec "$@"`;
  const own = { AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId, AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey };
  const command = [process.execPath, SCRIPT, "--config", world.configPath, ...args];
  const child = spawn("sh", ["-c", line, "sh", ...command], {
    cwd: world.dir,
    env: { PATH: process.env["PATH"], ...own, ...env },
  });
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  const [[code], stdout, stderr] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  return { code: code as number, stdout, stderr };
}

test.each([["HTTP_PROXY"], ["http_proxy"], ["ALL_PROXY"]])("buckets are reached through %s alone", async (variable) => {
  const hosts = new Set<string>();
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as {
    regions: { name: string; endpoint: string }[];
  };
  const real = new Map(config.regions.map(({ name, endpoint }) => [`s3.${name}.invalid`, new URL(endpoint)]));
  const proxy = createServer((request, response) => {
    const asked = new URL(request.url!);
    hosts.add(asked.host);
    const { hostname, port } = real.get(asked.host)!;
    const path = `${asked.pathname}${asked.search}`;
    const { method, headers } = request;
    const upstream = httpRequest({ hostname, port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    request.pipe(upstream);
  });
  const url = await listenLocally(proxy);
  try {
    const regions = config.regions.map((region) => ({ ...region, endpoint: `http://s3.${region.name}.invalid` }));
    await writeFile(world.configPath, JSON.stringify({ ...config, unsigned: true, regions }));
    await writeFile(join(world.dir, "upload-file"), "content");
    expect(await shell(":", ["put", "upload-file", "--key", "a"], { [variable]: url })).toMatchObject({ code: 0 });
    expect(await shell(":", ["get", "a", "-"], { [variable]: url })).toMatchObject({ code: 0, stdout: "content" });
    expect([...hosts].toSorted()).toEqual([...real.keys()].toSorted());
    hosts.clear();
    const without = await shell(":", ["ls"], { [variable]: url, NO_PROXY: ".invalid" });
    expect([without.code, hosts.size]).toEqual([1, 0]);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

test("the names of proxies: lower case first, ALL_PROXY for what has none, and http where no scheme is", () => {
  expect(proxiesOf({})).toBeUndefined();
  expect(proxiesOf({ NO_PROXY: "*", HTTP_PROXY: "" })).toBeUndefined();
  expect(proxiesOf({ HTTP_PROXY: "http://a:1", http_proxy: "b:2", all_proxy: "http://c:3", no_proxy: "d" })).toEqual({
    HTTP_PROXY: "http://b:2",
    HTTPS_PROXY: "http://c:3",
    NO_PROXY: "d",
  });
});

test("few descriptors make a sync narrower: all files are stored, and no region is blamed", async () => {
  await mkdir(join(world.dir, "many"));
  for (let i = 0; i < 300; i++) await writeFile(join(world.dir, `many/${i}`), `${i}`.repeat(4_000));
  const run = await shell("ulimit -n 160", ["sync", "many", "many/", "--json"]);
  expect([run.code, run.stderr]).toEqual([0, ""]);
  expect(JSON.parse(run.stdout)).toMatchObject({ stored: 300, failed: 0 });
  expect((await world.verify("many/7")).damage).toEqual([]);
});

test("a sync under 256 descriptors has 16 objects under way, each with two connections to a region", async () => {
  await mkdir(join(world.dir, "many"));
  for (let i = 0; i < 40; i++) await writeFile(join(world.dir, `many/${i}`), "x");
  const waiting: (() => void)[] = [];
  let most = 0;
  // Chunks are held until no more come. The region is not waited for longer than the others.
  const release = (): void => waiting.splice(0).forEach((go) => go());
  let timer: NodeJS.Timeout | undefined;
  world.faults.set("frankfurt", async (request, _response, name) => {
    if (request.method !== "PUT" || !name.startsWith("chunks/")) return false;
    clearTimeout(timer);
    timer = setTimeout(release, 500);
    await new Promise<void>((resolve) => {
      most = Math.max(most, waiting.push(resolve));
    });
    return false;
  });
  const run = await shell("ulimit -n 256", ["sync", "many", "many/", "--json"]);
  expect([run.code, run.stderr]).toEqual([0, ""]);
  expect(JSON.parse(run.stdout)).toMatchObject({ stored: 40, failed: 0 });
  expect(most).toBe(16);
});

test("a page of a load balancer with 502 in place of a listing is asked for again", async () => {
  await writeFile(join(world.dir, "upload-file"), "content");
  expect((await world.run(["put", "upload-file", "--key", "a"])).code).toBe(0);
  let pages = 0;
  world.faults.set("dublin", (request, response) => {
    if (request.method !== "GET" || !request.url!.includes("list-type=2") || pages > 0) return false;
    pages++;
    response.writeHead(502, { "content-type": "text/html" }).end("<html><title>502 Bad Gateway</title><hr></html>");
    return true;
  });
  const { code, stdout, stderr } = await world.run(["ls"]);
  expect([code, stdout.toString(), stderr, pages]).toEqual([0, "a\n", "", 1]);
});

test("such a page in place of an answer to a put or a removal is asked for again, too", async () => {
  await writeFile(join(world.dir, "upload-file"), "content");
  const pages = new Set<string>();
  world.faults.set("dublin", (request, response) => {
    if (pages.has(request.method!) || request.method === "HEAD") return false;
    pages.add(request.method!);
    request.resume();
    response.writeHead(502, { "content-type": "text/html" }).end("<html></html>");
    return true;
  });
  for (const args of [
    ["put", "upload-file", "--key", "a"],
    ["rm", "a"],
  ]) {
    const { code, stderr } = await world.run(args);
    expect([code, stderr]).toEqual([0, ""]);
  }
  expect(pages).toContain("PUT");
});

test.each<[string, string, Record<string, string>, string]>([
  ["that is no folder", ":", { TMPDIR: "/dev/null" }, "ENOTDIR"],
  ["whose files may not grow", "ulimit -f 64", {}, "EFBIG"],
])("stdin and a temporary folder %s: the error names the folder and TMPDIR", async (_case, before, env, code) => {
  const run = await shell(before, ["put", "-", "--key", "k"], env, "x".repeat(1_000_000));
  const folder = env["TMPDIR"] ?? "/tmp";
  const message = `DISK_FULL: ${folder} cannot hold temporary files (${code}): set TMPDIR to a folder with room for them\n`;
  expect([run.code, run.stderr]).toEqual([1, message]);
});

test.runIf(process.platform === "linux")(
  "a name that is not UTF-8 is named in bytes, and the rest is stored and removed",
  async () => {
    for (const name of ["a", "b"]) {
      await mkdir(join(world.dir, "folder"), { recursive: true });
      await writeFile(join(world.dir, "folder", name), name);
    }
    expect((await world.run(["sync", "folder", "c/"])).code).toBe(0);
    await unlink(join(world.dir, "folder/b"));
    await writeFile(join(world.dir, "folder/d\ufffd"), "a name that is text");
    const latin = Buffer.concat([Buffer.from(join(world.dir, "folder/caf")), Buffer.from([0xe9])]);
    await writeFile(latin, "x");
    const { code, stdout, stderr } = await world.run(["sync", "folder", "c/", "--delete"]);
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/^warning: folder\/caf\\xe9 is left out: its name is not UTF-8, .*rename it$/m),
    ]);
    expect(stdout.toString()).toMatch(/^removed +c\/b$/m);
    expect((await world.run(["ls", "c/"])).stdout.toString()).toBe("c/a\nc/d\ufffd\n");
    expect((await world.run(["put", "folder"])).stderr).toContain("caf\\xe9 is not stored: its name is not UTF-8");
  },
);
