/**
 * `agarose keys`: the key pair by which a publisher signs manifests, and the secrets that encrypt objects. Keys are
 * Ed25519: PEM for the private, `ed25519:…` for the public.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { putInForce as putKeysInForce, type KeysStep } from "@agarose/storage/commit/fence";
import { loadConfig, type Config } from "@agarose/storage/config/config";
import { configuredPublicKey, newKeyPair } from "@agarose/storage/config/signing";
import { writeNewSecret } from "@agarose/storage/files/whole-file";
import { configPath } from "../../lib/config-path.ts";
import { withConfig, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { logLine, printResult } from "../../ui/output.ts";
import { readFields, signingWith, writeFields } from "../../lib/files/config-fields.ts";
import { formatCount } from "@agarose/storage/maintenance/amounts";

/** Makes a key pair, and configures it where there is none. */
export async function create(file: string, { config: given, ...options }: GlobalOptions): Promise<void> {
  const publicKey = await createKey(file);
  const path = configPath(given);
  const fields = await readFields(path);
  const isFirst = fields !== undefined && fields["publicKeys"] === undefined && fields["signing"] === undefined;
  if (isFirst) {
    const { unsigned: _unsigned, ...others } = fields;
    await writeFields(path, { ...others, publicKeys: [publicKey], signing: signingWith(file, path) });
    const step = { config: await loadConfig(path), isFirst: true };
    await tryPutInForce(step, { ...(given !== undefined && { config: given }) });
  }
  printResult(options, { file, publicKey, config: isFirst ? path : undefined }, [
    `private key  ${file}: keep it secret, and out of version control`,
    `public key   ${publicKey}`,
    ...(isFirst
      ? [
          `configured   ${path} has both`,
          "then: `agarose init` and `agarose deploy`, which give the public key to the web app and the PoPs;",
          "if objects are stored already: `agarose keys apply --vouch`, which signs them",
        ]
      : fields
        ? [`${path} has a key already: \`agarose keys rotate\` replaces it; this one is not used`]
        : [
            `add them to ${path}: "publicKeys": ["${publicKey}"], "signing": ${JSON.stringify(signingWith(file, path))}`,
          ]),
  ]);
}

/** Prints the public key of the configured private key, and those that are trusted. */
export async function show({ config: path, ...options }: GlobalOptions): Promise<void> {
  const { signing, publicKeys = [] } = await loadConfig(configPath(path));
  const own = signing && !signing.command ? await configuredPublicKey(signing) : undefined;
  printResult(options, { signing: own, publicKeys }, [
    ...(own ? [`signs with  ${own}`] : []),
    ...publicKeys.map((key) => `trusts      ${key}`),
    ...(publicKeys.length === 0 ? ["trusts      every manifest, signed or not"] : []),
  ]);
}

/**
 * Writes a private key that only its owner may read to `file`, and returns its public key. Throws USAGE or DISK_FULL.
 */
export async function createKey(file: string): Promise<string> {
  const { privateKey, publicKey } = newKeyPair();
  await writeNewSecret(file, privateKey);
  return publicKey;
}

/** Every kind of machine that writes, and so needs the configuration of a step. */
export const WRITERS =
  "every machine that writes needs this configuration and its keys: people, CI and cron jobs that run put, sync, rm, " +
  "restore, recode, expire, repair, scrub, gc or keys; gateways; and Workers that scrub";

/** The change that a step puts into force, and its configuration. */
export interface InForce extends KeysStep {
  readonly config: Config;
}

/** It throws as `putInForce` of the storage library does. */
export function putInForce({ config, ...step }: InForce, options: GlobalOptions): Promise<void> {
  return withConfig(config, options, WRITING, (context) => putKeysInForce(step, context));
}

/** `putInForce`, with a warning where the buckets cannot be asked, as before they are made, or have other keys. */
export async function tryPutInForce(step: InForce, options: GlobalOptions): Promise<void> {
  try {
    await putInForce(step, options);
  } catch (cause) {
    const error = toAgaroseError(cause);
    if (!(error instanceof AgaroseError) || error.code === "REGION_MISPLACED" || error.code === "ABORTED") throw error;
    const problem = `${error.code}: ${error.message}`;
    logLine(
      error.code === "KEYS_OUTDATED"
        ? `warning: ${problem}`
        : `warning: the buckets were not told (${problem}): run \`agarose doctor --fix\` once they are there`,
    );
  }
}

/** Throws USAGE where a step would make objects, or versions of them, unreadable. `next` says what to do first. */
export function refuseLeft(left: readonly string[], next: string): void {
  if (left.length === 0) return;
  const message = `${formatCount(left.length, "object")} or versions of them would become unreadable, such as ${JSON.stringify(left[0])}`;
  throw new AgaroseError("USAGE", `${message}: run \`agarose keys apply\`${next} first`, { keys: left.slice(0, 100) });
}
