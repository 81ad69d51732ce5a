/**
 * `agarose init [FOLDER]`: writes what a web app serves to read through Agarose, the worker files and the client
 * configuration.
 */
import { access, mkdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AgaroseError } from "@agarose/core";
import type { Command } from "commander";
import { CONFIG_PATH_DEFAULT, loadConfig } from "../../lib/config.ts";
import type { GlobalOptions } from "../../lib/context.ts";
import { printResult } from "../../lib/output.ts";

interface InitOptions extends GlobalOptions {
  readonly prefix: string;
  readonly force?: boolean;
}

interface WrittenFile {
  readonly path: string;
  /** `kept`: it was there and is the app's own by now; --force replaces it. */
  readonly outcome: "written" | "kept";
}

const CLIENT_CONFIG = "agarose.json";

export function register(program: Command): void {
  program
    .command("init")
    .description("write the service worker's files and a client configuration into a web app's folder of static files")
    .argument("[folder]", "served at the root of the app's origin", "public")
    .option("--prefix <path>", "paths that are read through Agarose", parsePrefix, "/ec/")
    .option("--force", "replace a client configuration that is there")
    .action(async (folder: string, _options: unknown, command: Command) => {
      await init(folder, command.optsWithGlobals<InitOptions>());
    });
}

async function init(folder: string, options: InitOptions): Promise<void> {
  const path = join(folder, CLIENT_CONFIG);
  await refuseOwnConfig(path, options.config ?? CONFIG_PATH_DEFAULT);
  const clientConfig = await clientConfigOf(options);
  await mkdir(folder, { recursive: true }).catch((cause: unknown) => {
    throw new AgaroseError("USAGE", `${folder} cannot be made: ${(cause as Error).message}`, { folder }, cause);
  });
  const { dropInFiles } = await import("@agarose/sw/files");
  const written = await Promise.all(
    [...(await dropInFiles())].map(async ([name, contents]): Promise<WrittenFile> => {
      await writeFile(join(folder, name), contents);
      return { path: join(folder, name), outcome: "written" };
    }),
  );
  const config = await writeClientConfig(path, clientConfig, options.force ?? false);
  const files = [...written, config];
  const { pops, regions } = clientConfig;
  printResult(options.json ?? false, { files, config: clientConfig }, [
    ...files.map((file) => `${file.outcome.padEnd(8)} ${file.path}`),
    ...(pops.length + regions.length === 0
      ? [`fill in ${path}: it names 0 PoPs and 0 regions, at least 1 is needed`]
      : []),
    `then: import { register } from "/agarose.js"; await register("${workerUrl(options.prefix)}");`,
  ]);
}

/** The PoPs and buckets of the command line's configuration, without what is not for clients. Empty lists without one. */
async function clientConfigOf({ config: path, prefix }: InitOptions) {
  if (path === undefined && !(await exists(CONFIG_PATH_DEFAULT))) return { prefix, pops: [], regions: [] };
  const config = await loadConfig(path ?? CONFIG_PATH_DEFAULT);
  // Without a PoP's signatures a private bucket cannot be read, so it is not for clients to know.
  const regions = config.regions.filter((region) => !region.private);
  return { prefix, pops: config.pops, regions: regions.map(({ name, url }) => ({ name, url })) };
}

async function writeClientConfig(path: string, config: object, force: boolean): Promise<WrittenFile> {
  try {
    await writeFile(path, `${JSON.stringify(config, undefined, 2)}\n`, { flag: force ? "w" : "wx" });
    return { path, outcome: "written" };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return { path, outcome: "kept" };
    throw error;
  }
}

/** Both configurations have the same name by default: the one must not be written over the other, nor be served. */
async function refuseOwnConfig(path: string, own: string): Promise<void> {
  const [target, source] = await Promise.all([path, own].map((file) => realpath(file).catch(() => undefined)));
  if (target === undefined || target !== source) return;
  throw new AgaroseError(
    "USAGE",
    `${path} is the configuration of the command line: name another folder, such as public`,
    { path },
  );
}

function workerUrl(prefix: string): string {
  return `/agarose-sw.js?config=/${CLIENT_CONFIG}${prefix === "/ec/" ? "" : `&prefix=${encodeURI(prefix)}`}`;
}

function parsePrefix(prefix: string): string {
  if (/^\/([^/?#]+\/)*$/.test(prefix)) return prefix;
  throw new AgaroseError("USAGE", `--prefix ${prefix} is not a path such as /ec/, with a slash at both ends`, {
    prefix,
  });
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
