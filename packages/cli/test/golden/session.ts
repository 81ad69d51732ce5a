/**
 * The commands of the session, by the verb whose golden file shows them, in the order in which they run.
 */
import { chunkName, manifestName, type Manifest } from "@agarose/core/format";
import type { World } from "../world.ts";

/** The context of the steps between commands. */
export interface Workplace {
  readonly world: World;
  /** Writes a file of the world's folder as one that has not changed lately. */
  write(name: string, content: string | Uint8Array): Promise<void>;
  /** Writes a configuration that is made from the present one. Default name: that of the present one. */
  configure(change: (json: { regions: { name: string }[] }) => object, name?: string): Promise<void>;
  /** Lets so many hours pass. */
  pass(hours: number): void;
}

/**
 * A command line, in which <folder> is that of the world, or what happens before the next one. A line runs with --json,
 * unless its text for people is to be seen.
 */
export type Step = string | { readonly text: string } | ((workplace: Workplace) => Promise<void> | void);

/** Bytes that are the same in every run. */
const bytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, (_, index) => (index * 31) % 251);
const SMALL = "a small file";

async function manifestOf({ world }: Workplace, key: string): Promise<Manifest> {
  return JSON.parse((await world.read("tokyo", manifestName(key))).toString()) as Manifest;
}

/** Takes chunk 0 of an object away, or changes its first byte. */
function damage(key: string, change: (chunk: Buffer) => Uint8Array | undefined): Step {
  return async (workplace) => {
    const { upload, placement } = (await manifestOf(workplace, key)) as unknown as {
      readonly upload: string;
      readonly placement: readonly string[];
    };
    await workplace.world.tamper(placement[0]!, chunkName(key, upload, 0), change);
  };
}

const lose = (key: string): Step => damage(key, () => undefined);
const spoil = (key: string): Step => damage(key, (chunk) => chunk.fill(chunk[0]! ^ 1, 0, 1));
const write =
  (name: string, content: string | Uint8Array): Step =>
  ({ write: toFile }) =>
    toFile(name, content);
const pass =
  (hours: number): Step =>
  (workplace) =>
    workplace.pass(hours);

export const SESSION: Readonly<Record<string, readonly Step[]>> = {
  keys: ["keys show", "keys new one.pem", "keys new one.pem", "keys show", "keys secret one.secret --prefix private/"],
  put: [
    write("small.txt", SMALL),
    write("large.bin", bytes(50_000)),
    write("site/index.html", "<!doctype html>"),
    write("site/img/a.png", bytes(3_000)),
    "put small.txt --dry-run",
    "put small.txt --key kept/small",
    "put small.txt --key kept/small",
    "put large.bin --header cache-control:no-store",
    "put site --prefix web/",
    "put small.txt --key tmp/a",
    write("small.txt", "another file"),
    "put small.txt --key kept/small",
    "put nowhere.txt",
    "put small.txt --header nonsense",
  ],
  ls: ["ls", "ls --long", "ls web/ --json-lines", "ls --after large.bin", "ls nowhere/", "ls --consistency eventual"],
  get: [
    "get kept/small small.out",
    "get large.bin large.out",
    "get large.bin part.out --range 100-199",
    "get large.bin last.out --range -10",
    "get large.bin again.out --consistency eventual",
    "get nowhere nowhere.out",
    "get large.bin part.out --range 60000-",
  ],
  versions: ["versions kept/small", "versions large.bin", "versions nowhere"],
  restore: ["restore kept/small --dry-run", "restore kept/small", "restore large.bin", "versions kept/small"],
  verify: [
    "verify",
    "verify --quick",
    lose("large.bin"),
    spoil("web/site/img/a.png"),
    "verify",
    "verify --quick --json-lines",
    "verify large.bin",
    "verify nowhere",
  ],
  repair: [
    "repair --dry-run",
    "repair --quick",
    "repair",
    "repair --queued",
    "repair large.bin",
    ({ world }) => world.tamper("dublin", manifestName("large.bin"), () => undefined),
    "repair --prefix large",
  ],
  scrub: [
    lose("large.bin"),
    "scrub --dry-run",
    "scrub --cursor scrub.cursor",
    spoil("large.bin"),
    "scrub --sample 100%",
    "scrub --age 30d --prefix web/ --json-lines",
    "scrub --every never",
  ],
  sync: [
    "sync site copy/ --dry-run",
    "sync site copy/ --yes",
    "sync site copy/ --yes",
    write("site/index.html", "<!doctype html><title>two</title>"),
    write("site/new.txt", "new"),
    "sync site copy/ --yes --exclude img/** --delete --jobs 1",
    "sync site copy/ --yes --delete --checksum --json-lines",
    "sync copy/img/ fetched --get --yes",
    "sync copy/img/ fetched --get --yes",
    write("fetched/extra.txt", "extra"),
    "sync copy/img/ fetched --get --yes --delete",
    "sync nowhere copy/ --yes",
  ],
  rm: [
    "rm tmp/a --dry-run",
    "rm copy/new.txt",
    "rm copy/new.txt",
    "rm --recursive copy/ --yes",
    "rm kept/small",
    "rm kept/small --undelete",
    "rm",
    "rm --all",
  ],
  du: ["du", "du web/", "du --cost"],
  gc: [
    write("large.bin", bytes(40_000)),
    "put large.bin",
    pass(24 * 2),
    "gc",
    "gc --delete --dry-run",
    "gc --delete --yes",
    pass(24 * 2),
    "gc --delete --yes --json-lines",
    pass(24 * 31),
    "gc copy/ --delete --yes --forget-removed",
    "gc --older-than 0",
  ],
  expire: ["expire --dry-run", "expire --yes", "expire --yes --json-lines"],
  recode: [
    "recode --dry-run --rate 1MB/s",
    "recode large --code 3+2 --dry-run",
    "recode large --code 3+2",
    "recode large --code 3+2",
    "recode --code nonsense",
  ],
  migrate: [
    ({ configure }) =>
      configure((json) => ({ ...json, regions: json.regions.filter(({ name }) => name !== "sydney") }), "next.json"),
    "migrate <folder>/next.json --dry-run --rate 1MB/s",
    "migrate <folder>/next.json --move --yes",
    "migrate <folder>/next.json --yes",
    "migrate <folder>/next.json --move --yes",
    "migrate <folder>/next.json --finish --dry-run",
    "migrate <folder>/next.json --finish --yes",
  ],
  rotation: [
    "keys rotate two.pem",
    "keys rotate two.pem --sign",
    "keys rotate two.pem --finish --dry-run",
    "put large.bin --key private/large",
    "ls private/ --long",
    "get private/large private.out",
    "keys secret two.secret --prefix private/",
    "keys secret two.secret --prefix private/ --encrypt",
    "keys secret two.secret --prefix private/ --finish --dry-run",
  ],
  "keys-apply": [
    "keys apply --dry-run",
    "keys apply",
    "keys apply large.bin --vouch",
    "keys apply",
    "keys rotate two.pem --finish --dry-run",
    "keys secret two.secret --prefix private/ --finish --dry-run",
    "verify",
  ],
  status: [
    "status",
    ({ configure }) => configure((json) => ({ ...json, pops: [{ name: "fra", url: "http://127.0.0.1:1" }] })),
    "status",
    "ls",
  ],
  doctor: ["doctor", "doctor --fix", "doctor --deployed"],
  usage: [
    "nonsense",
    "put",
    "get",
    "ls --nonsense",
    "--config nowhere.json ls",
    "solve --config x y",
    "migrate",
    "bench --rounds x",
    "share members --prefix",
    "share members/ --expires 8d",
    write("pairs.json", JSON.stringify([{ accessKeyId: "a", secretAccessKey: "s", prefix: "photos" }])),
    "gateway --keys pairs.json",
    "gateway --keys nowhere.json",
  ],
  objects: [
    "stat large.bin",
    { text: "stat kept/small" },
    "stat nowhere",
    "cp large.bin copies/ --dry-run",
    "cp large.bin copies/",
    { text: "cp large.bin copies/large.bin" },
    "mv copies/large.bin moved.bin --no-purge",
    "stat copies/large.bin",
    { text: "cat kept/small web/site/index.html" },
    { text: "cat nowhere" },
    "cat kept/small",
    "get -r web/site/img/ brought",
    { text: "get -r web/site/img/ brought" },
    { text: "verify kept/small" },
    { text: "verify kept/small --quiet" },
    "verify kept/small --quiet",
    { text: "put small.txt --key kept/small --force --no-purge --quiet" },
    { text: "cat kept/small --quiet" },
    { text: "stat nowhere --quiet" },
  ],
};
