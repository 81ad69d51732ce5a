/**
 * `agarose keys rotate`: replaces the signing key in three steps, so that readers never meet a key they do not trust.
 *
 * 1. Both keys are trusted, and the old one signs, until every PoP and client has the new public key.
 * 2. The new one signs, and `agarose keys apply` signs again what the old one has signed. Writers that do not trust it
 *    yet are refused.
 * 3. The old one is not trusted any more, and writers that sign with it are refused.
 */
import { existsSync } from "node:fs";
import { AgaroseError } from "@agarose/core";
import { keyIdOf, rawPublicKey, type ManifestRecord } from "@agarose/core/format";
import { confirm, sampleOf } from "../../ui/confirm.ts";
import { loadConfig, type Config } from "@agarose/storage/config/config";
import { configPath } from "../../lib/config-path.ts";
import { READING, withContext } from "../../lib/context.ts";
import { printResult } from "../../ui/output.ts";
import { configuredPublicKey } from "@agarose/storage/config/signing";
import { readFields, signingWith, writeFields } from "../../lib/files/config-fields.ts";
import { createKey, putInForce, WRITERS, refuseLeft } from "./keys.ts";
import { objectsLeft } from "@agarose/storage/history/kept-versions";
import type { Values } from "../../command.ts";
import type { rotateArgs } from "./index.ts";

type Options = Values<typeof rotateArgs>;

const PUBLISH = "then: `agarose init` and deploy the app, `agarose deploy`, and wait until clients have the new file;";

/** Takes one step. Throws USAGE when it is not the next one. */
export async function rotate(file: string, options: Options): Promise<void> {
  if (options.sign && options.finish) throw new AgaroseError("USAGE", "give --sign or --finish, not both");
  checkDryRun(options);
  const path = configPath(options.config);
  const config = await loadConfig(path);
  if (!config.publicKeys || !config.signing) {
    throw usage("the configuration has no `publicKeys` and `signing` yet: make the first key with `agarose keys new`");
  }
  if (config.signing.command) throw usage("`signing` is a command: change `publicKeys` and the command's key by hand");
  const step = options.finish ? finish : options.sign ? sign : start;
  const { publicKeys, lines } = await step(file, config, options);
  if (options.dryRun) {
    const dropped = config.publicKeys.filter((key) => !publicKeys.includes(key));
    const line = `3 of 3 can be done: ${sampleOf(dropped)} would not be trusted any more`;
    printResult(options, { file, publicKeys, dropped, dryRun: true }, [line]);
    return;
  }
  const fields = { ...(await readFields(path)), publicKeys, ...(options.sign && { signing: signingWith(file, path) }) };
  await writeFields(path, fields);
  printResult(options, { file, publicKeys, signing: options.sign ? file : undefined }, lines);
}

/** Throws USAGE where a step has nothing to show: the others write a file and delete nothing. */
export function checkDryRun(options: Pick<Options, "dryRun" | "finish">): void {
  if (options.dryRun && !options.finish)
    throw usage("--dry-run is for --finish, which drops something: add it, or leave --dry-run out");
}

interface Step {
  readonly publicKeys: readonly string[];
  readonly lines: readonly string[];
}

async function start(file: string, { publicKeys = [] }: Config): Promise<Step> {
  if (publicKeys.length > 1) {
    throw usage(`${publicKeys.length} keys are trusted already: end that rotation with --sign and --finish first`);
  }
  const publicKey = await createKey(file);
  return {
    publicKeys: [...publicKeys, publicKey],
    lines: [
      `1 of 3: ${publicKey} is trusted in addition to the old key, which still signs`,
      PUBLISH,
      `then: agarose keys rotate ${file} --sign`,
    ],
  };
}

async function sign(file: string, config: Config, options: Options): Promise<Step> {
  const { publicKeys = [] } = config;
  const publicKey = await trustedKeyOf(file, publicKeys);
  // From now on writers have to trust the new key. Those that sign with the old one may do so until the end.
  await putInForce({ config: { ...config, signing: { keyFile: file } } }, options);
  return {
    publicKeys,
    lines: [
      `2 of 3: ${publicKey} signs from now on`,
      `then: ${WRITERS};`,
      "then: `agarose keys apply`, which signs again what the old key has signed;",
      `then: agarose keys rotate ${file} --finish`,
    ],
  };
}

async function finish(file: string, config: Config, options: Options): Promise<Step> {
  const { signing, publicKeys = [] } = config;
  const publicKey = await trustedKeyOf(file, publicKeys);
  if ((await configuredPublicKey(signing!)) !== publicKey) throw usage(`${file} does not sign yet: use --sign first`);
  const keyId = await keyIdOf(rawPublicKey(publicKey));
  await refuseOld(file, keyId, options);
  const step: Step = {
    publicKeys: [publicKey],
    lines: [`3 of 3: only ${publicKey} is trusted`, PUBLISH, "then destroy the old private key"],
  };
  const dropped = sampleOf(publicKeys.filter((key) => key !== publicKey));
  const summary = [`This stops trusting ${dropped}: what only that key has signed cannot be read any more.`];
  await confirm({ summary, question: "Stop trusting it?" }, options);
  if (options.dryRun) return step;
  await putInForce({ config, change: { signers: [keyId], signer: keyId }, waits: true }, options);
  // Manifests that the old key has signed since the first look, and acknowledged in time.
  await refuseOld(file, keyId, options);
  return step;
}

async function refuseOld(file: string, keyId: string, options: Options): Promise<void> {
  const isLeft = ({ signature }: ManifestRecord): boolean => signature?.keyId !== keyId;
  const left = await withContext(options, READING, (context) => objectsLeft("", isLeft, context));
  refuseLeft(left, `, which signs them with ${file},`);
}

async function trustedKeyOf(file: string, publicKeys: readonly string[]): Promise<string> {
  if (!existsSync(file)) throw usage(`there is no ${file}: begin with agarose keys rotate ${file}`);
  const publicKey = await configuredPublicKey({ keyFile: file });
  if (publicKeys.includes(publicKey)) return publicKey;
  throw usage(`the key of ${file} is not in \`publicKeys\`: begin with agarose keys rotate and a new file`);
}

function usage(message: string): AgaroseError {
  return new AgaroseError("USAGE", message);
}
