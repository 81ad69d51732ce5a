/** Wrangler as a child process, and what it reads from its configuration. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { AgaroseError } from "@agarose/core";
import type { PopEnvironment } from "./deployment.ts";

/** How Wrangler ended: its exit code, and all that it wrote, as UTF-8. */
export interface WranglerResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The fields of a Wrangler environment that are used here. */
interface WranglerConfig {
  readonly name?: string;
  readonly kv_namespaces: readonly { readonly binding: string; readonly id?: string }[];
  readonly triggers: { readonly crons?: readonly string[] | undefined };
  readonly durable_objects: { readonly bindings: readonly { readonly name: string }[] };
  readonly placement?: { readonly region?: string; readonly host?: string; readonly hostname?: string } | undefined;
  readonly vars: Readonly<Record<string, unknown>>;
}

/** Runs Wrangler with `args`, with `input` on its stdin. */
export type Wrangler = (args: readonly string[], input?: string) => Promise<WranglerResult>;

/** The Wrangler that is installed beside this program. Throws CONFIG_INVALID when none is. */
export function installedWrangler(): Wrangler {
  const script = join(dirname(pathOfPackage()), "bin/wrangler.js");
  return async (args, input = "") => {
    const env = { ...process.env, WRANGLER_SEND_METRICS: "false", CI: "1" };
    const child = spawn(process.execPath, [script, ...args], { env });
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code: (code as number | null) ?? 1, stdout, stderr };
  };
}

/** The environments of the file `config`, or those of them named. Throws CONFIG_INVALID. */
export async function readEnvironments(config: string, names?: readonly string[]): Promise<PopEnvironment[]> {
  pathOfPackage();
  const { unstable_readConfig: read } = await import("wrangler");
  const quietly = { hideWarnings: true };
  try {
    const { definedEnvironments: defined = [] } = read({ config }, quietly) as { definedEnvironments?: string[] };
    const unknown = names?.find((name) => !defined.includes(name));
    if (unknown !== undefined) {
      throw new AgaroseError("USAGE", `${config} has no [env.${unknown}]: it has ${defined.join(", ") || "none"}`);
    }
    return (names ?? defined).map((name) => {
      const environment: WranglerConfig = read({ config, env: name }, quietly);
      return {
        name,
        worker: environment.name ?? "",
        namespaces: environment.kv_namespaces.map(({ binding, id }) => ({ binding, ...(id && { id }) })),
        crons: environment.triggers.crons ?? [],
        durableObjects: environment.durable_objects.bindings.map((binding) => binding.name),
        placement: environment.placement?.region ?? environment.placement?.host ?? environment.placement?.hostname,
        vars: environment.vars,
      };
    });
  } catch (error) {
    if (error instanceof AgaroseError) throw error;
    throw new AgaroseError("CONFIG_INVALID", `${config}: ${(error as Error).message}`, { config }, error);
  }
}

/** The content of the file `path`, unchecked. Throws CONFIG_INVALID. */
export async function readRawConfig(path: string): Promise<Readonly<Record<string, unknown>>> {
  pathOfPackage();
  const { experimental_readRawConfig: read } = await import("wrangler");
  try {
    return read({ config: path }).rawConfig as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new AgaroseError("CONFIG_INVALID", `${path}: ${(error as Error).message}`, { path }, error);
  }
}

/** Whether the installed Wrangler knows a setting of its configuration; false where none is installed. */
export async function knowsSetting(name: string): Promise<boolean> {
  try {
    const schema = await readFile(join(dirname(pathOfPackage()), "config-schema.json"), "utf8");
    return schema.includes(`"${name}":`);
  } catch {
    return false;
  }
}

/** Writes `variables` of the environment `pop` into the JSON file `path`, and keeps its comments. */
export async function patchVariables(
  path: string,
  pop: string,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  const { experimental_patchConfig: patch } = await import("wrangler");
  patch(path, { env: { [pop]: { vars: { ...variables } } } }, false);
}

function pathOfPackage(): string {
  try {
    return createRequire(import.meta.url).resolve("wrangler/package.json");
  } catch (error) {
    const message = "Wrangler is not installed: npm install --save-dev wrangler@4";
    throw new AgaroseError("CONFIG_INVALID", message, {}, error);
  }
}
