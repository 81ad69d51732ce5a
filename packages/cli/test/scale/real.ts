/**
 * * The cost of walks over real objects on a real S3 server (versitygw), compared with the nearest equivalent of
 * rclone.
 *
 *     node packages/cli/test/scale/real.ts [objects]
 *
 * Objects are small files, inside their manifests. One bucket is written by requests, the others are copies of its
 * folder: manifests of inline objects are the same in every region.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeManifest, manifestName, sealManifest } from "@agarose/core/format";
import { findVersitygw, startVersitygw } from "@agarose/dev-world/s3-endpoint";
import { nodeSha256 } from "@agarose/storage/objects/sha256";
import { S3Store } from "@agarose/storage/buckets/s3-store";
import { AGAROSE, measure, type Measured } from "./measure.ts";

const REGIONS = ["frankfurt", "dublin", "virginia", "paulo", "tokyo", "sydney"];
const CREDENTIALS = { accessKeyId: "scale", secretAccessKey: "scale-secret" };
const PREFIX = "site";
const FILES_IN_FOLDER = 1_000;
const WRITES_AT_A_TIME = 16;

const objects = Number(process.argv[2] ?? 100_000);
if (!(await findVersitygw())) throw new Error("versitygw is not installed: npm test installs it");
const folder = await mkdtemp(join(tmpdir(), "agarose-scale-"));
const [site, data] = [join(folder, PREFIX), join(folder, "data")];
const bucketOf = (region: string): string => `bucket-${region}`;

/** File number i: its path below the folder, and its content. */
const fileOf = (index: number): { path: string; text: string } => ({
  path: `${String(Math.floor(index / FILES_IN_FOLDER)).padStart(4, "0")}/${String(index).padStart(7, "0")}.txt`,
  text: `file number ${index}\n`,
});

let server = await startVersitygw({ ...CREDENTIALS, dir: data, buckets: REGIONS.map(bucketOf) });
try {
  await writeFiles();
  await fillFirst();
  await server.close();
  for (const region of REGIONS.slice(1)) {
    // With the extended attributes, in which versitygw keeps ETags.
    execFileSync("cp", ["-a", `${join(data, bucketOf(REGIONS[0]!))}/.`, join(data, bucketOf(region))]);
  }
  server = await startVersitygw({ ...CREDENTIALS, dir: data, buckets: [] });
  await compare();
} finally {
  await server.close();
  await rm(folder, { recursive: true, force: true });
}

async function writeFiles(): Promise<void> {
  for (let index = 0; index < objects; index++) {
    const { path, text } = fileOf(index);
    if (index % FILES_IN_FOLDER === 0) await mkdir(join(site, path, ".."), { recursive: true });
    await writeFile(join(site, path), text);
  }
}

/** The manifests as `put` writes them, without its protocol: there is no other writer. */
async function fillFirst(): Promise<void> {
  const [region] = REGIONS;
  const store = new S3Store(
    {
      name: region!,
      provider: region!,
      endpoint: server.url,
      bucket: bucketOf(region!),
      awsRegion: "us-east-1",
      url: "",
    },
    { credentials: CREDENTIALS, attempts: 3 },
  );
  let next = 0;
  const write = async (): Promise<void> => {
    for (let index = next++; index < objects; index = next++) {
      const { path, text } = fileOf(index);
      const key = `${PREFIX}/${path}`;
      const content = Buffer.from(text);
      const manifest = await sealManifest(
        {
          key,
          k: 1,
          m: 0,
          placement: [],
          modified: new Date().toISOString(),
          generation: 1,
          upload: createHash("sha256").update(key).digest("hex").slice(0, 32),
          bytes: content.length,
          stripeBytes: 65_536,
          blockBytes: 65_536,
          headers: {},
          contentType: "text/plain",
          sha256: createHash("sha256").update(content).digest("hex"),
          hashes: [],
          inline: content,
          requires: ["inline"],
        },
        nodeSha256,
      );
      const bytes = encodeManifest(manifest);
      await store.put(manifestName(key), bytes, { bytes: bytes.length, contentType: "application/json" });
    }
  };
  await Promise.all(Array.from({ length: WRITES_AT_A_TIME }, write));
}

async function compare(): Promise<void> {
  const config = join(folder, "agarose.config.json");
  const regions = REGIONS.map((name) => ({ name, provider: name, endpoint: server.url, bucket: bucketOf(name) }));
  await writeFile(config, JSON.stringify({ regions, survive: { regions: 2, providers: 2 }, unsigned: true }));
  const env = {
    PATH: process.env["PATH"],
    HOME: folder,
    AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    RCLONE_CONFIG_S_TYPE: "s3",
    RCLONE_CONFIG_S_PROVIDER: "Other",
    RCLONE_CONFIG_S_ENV_AUTH: "true",
    RCLONE_CONFIG_S_ENDPOINT: server.url,
    RCLONE_CONFIG_S_LIST_VERSION: "2",
  };
  const agarose = (...args: string[]): [string, string[]] => [process.execPath, [AGAROSE, "--config", config, ...args]];
  const rclone = (...args: string[]): [string, string[]] => ["rclone", args];
  const cache = join(folder, "sync.cache");
  const plain = "s:plain";
  const lost = join(data, bucketOf(REGIONS.at(-1)!), "manifests");
  const rows: [name: string, command: [string, string[]], before?: () => Promise<void>][] = [
    ["agarose ls", agarose("ls")],
    ["rclone lsf -R of one bucket", rclone("lsf", "-R", `s:${bucketOf(REGIONS[0]!)}/manifests`)],
    ["agarose verify --quick", agarose("verify", "--quick")],
    ["agarose scrub", agarose("scrub")],
    ["agarose gc", agarose("gc")],
    ["agarose verify", agarose("verify")],
    ["agarose repair, one bucket lost", agarose("repair"), () => rm(lost, { recursive: true })],
    ["agarose verify, after it", agarose("verify")],
    ["agarose du", agarose("du")],
    ["agarose sync, nothing new, first", agarose("sync", site, PREFIX, "--cache", cache, "--no-purge")],
    ["agarose sync, nothing new, with its cache", agarose("sync", site, PREFIX, "--cache", cache, "--no-purge")],
    ["rclone mkdir", rclone("mkdir", plain)],
    ["rclone copy of all files to one bucket", rclone("copy", site, plain)],
    ["rclone sync, nothing new", rclone("sync", "--checksum", site, plain)],
  ];
  for (const [name, [command, args], before] of rows) {
    await before?.();
    console.log(lineOf(name, await measure(command, args, env)));
  }
}

function lineOf(name: string, { code, seconds, peakMiB, last, problems }: Measured): string {
  const rate = Math.round(objects / seconds);
  const outcome = code === 0 ? last : `${last}\n${problems}`;
  return `${name}: exit ${code}, ${seconds.toFixed(1)} s, ${rate} objects/s, ${peakMiB} MiB resident; ${outcome}`;
}
