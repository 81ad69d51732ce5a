/**
 * `agarose keys secret`: makes the secret of a prefix, or replaces it in three steps, so that no reader meets an object
 * whose secret it does not know.
 *
 * 1. Both secrets decrypt, and the old one encrypts, until every reader has the new one.
 * 2. The new one encrypts, and `agarose keys apply` encrypts the data keys of what is stored by it.
 * 3. The old one is dropped.
 */
import { randomBytes } from "node:crypto";
import { dirname, isAbsolute, relative, resolve } from "node:path";
import { AgaroseError } from "@agarose/core";
import { openSecret } from "@agarose/core/encryption";
import { isTombstone, type ManifestRecord } from "@agarose/core/format";
import { confirm } from "../../ui/confirm.ts";
import { loadConfig } from "@agarose/storage/config/config";
import { configPath } from "../../lib/config-path.ts";
import type { Config, SecretLocation } from "@agarose/storage/config/config-schema";
import { readSecret } from "@agarose/storage/encryption/secrets-of";
import { READING, withContext } from "../../lib/context.ts";
import { printResult } from "../../ui/output.ts";
import { writeNewSecret } from "@agarose/storage/files/whole-file";
import { readFields, writeFields } from "../../lib/files/config-fields.ts";
import { putInForce, tryPutInForce, WRITERS, type InForce, refuseLeft } from "./keys.ts";
import { objectsLeft } from "@agarose/storage/history/kept-versions";
import { checkDryRun } from "./rotate.ts";
import type { Values } from "../../command.ts";
import type { secretArgs } from "./index.ts";

interface Rule {
  readonly prefix: string;
  readonly secrets: readonly SecretLocation[];
}

const SECRET_BYTES = 32;

/** Takes one step with the secret in `file`. Throws USAGE when it is not the next one. */
export async function makeSecret(file: string, options: Values<typeof secretArgs>): Promise<void> {
  const { prefix, encrypt = false, finish = false } = options;
  if (encrypt && finish) throw usage("give --encrypt or --finish, not both");
  checkDryRun(options);
  const path = configPath(options.config);
  const config = await loadConfig(path);
  const rules = ((await readFields(path))?.["encryption"] ?? []) as readonly Partial<Rule>[];
  const rule = rules.find((one) => (one.prefix ?? "") === prefix);
  const place = { file: isAbsolute(file) ? file : relative(resolve(dirname(path)), resolve(file)) };
  const step = encrypt ? useNew : finish ? dropOld : addNew;
  const stepOptions = { ...options, rules: config.encryption, current: config };
  const { secrets, lines } = await step(file, place, rule?.secrets ?? [], stepOptions);
  if (options.dryRun) {
    const what = `the old secret of ${prefix === "" ? "all keys" : JSON.stringify(prefix)}`;
    const line = `3 of 3 can be done: ${what} would be dropped from ${path}`;
    printResult(options, { file, prefix, config: path, dryRun: true }, [line]);
    return;
  }
  const others = rules.filter((one) => one !== rule);
  await writeFields(path, { ...(await readFields(path)), encryption: [...others, { prefix, secrets }] });
  const id = await idOf({ file });
  printResult(options, { file, prefix, secret: id, config: path }, lines(id));
}

interface Step {
  readonly secrets: readonly SecretLocation[];
  /** The lines to print, with the name of the secret. */
  readonly lines: (id: string) => string[];
}

type StepOptions = Values<typeof secretArgs> & { readonly rules: Config["encryption"]; readonly current: Config };

/** The record in the buckets of the secrets of a prefix. */
function inForce(ids: readonly string[], { prefix, current }: StepOptions): InForce {
  return { config: current, change: { secrets: [{ prefix, ids }] } };
}

async function addNew(
  file: string,
  place: SecretLocation,
  present: readonly SecretLocation[],
  options: StepOptions,
): Promise<Step> {
  if (present.length > 1) throw usage("the prefix has two secrets: end that replacement with --encrypt and --finish");
  await writeNewSecret(file, `aes256:${randomBytes(SECRET_BYTES).toString("base64")}\n`);
  const own = options.rules.find(({ prefix }) => prefix === options.prefix)?.secrets ?? [];
  const ids = await Promise.all([...own, { file }].map(idOf));
  await tryPutInForce(inForce(ids, options), options);
  const [old] = present;
  if (!old) {
    const lines = (id: string) => [
      `secret      ${file}, named ${id}: keep it secret, out of version control, and in more than one place;`,
      "            without it, no one can read what it encrypts",
      "encrypts    what is stored from now on",
      `then        ${WRITERS}`,
    ];
    return { secrets: [place], lines };
  }
  const lines = (id: string) => [
    `1 of 3: ${id} decrypts in addition to the old secret, which still encrypts`,
    "then: give the new secret to every reader that has the old one;",
    `then: agarose keys secret ${file} --encrypt with the same --prefix`,
  ];
  return { secrets: [old, place], lines };
}

async function useNew(file: string, place: SecretLocation, present: readonly SecretLocation[]): Promise<Step> {
  const others = present.filter((one) => !isSame(one, place));
  if (others.length === present.length) throw usage(`${file} is not a secret of the prefix: begin without --encrypt`);
  const lines = (id: string) => [
    `2 of 3: ${id} encrypts from now on`,
    `then: ${WRITERS};`,
    "then: `agarose keys apply`, which encrypts the data keys of what is stored by it;",
    `then: agarose keys secret ${file} --finish with the same --prefix`,
  ];
  return { secrets: [place, ...others], lines };
}

async function dropOld(
  file: string,
  place: SecretLocation,
  [first]: readonly SecretLocation[],
  options: StepOptions,
): Promise<Step> {
  if (!first || !isSame(first, place)) throw usage(`${file} does not encrypt yet: use --encrypt first`);
  const own = await idOf({ file });
  await refuseOthers(own, options);
  const lines = (id: string) => [
    `3 of 3: only ${id} encrypts and decrypts`,
    "then: take the old secret from the readers, and destroy it",
  ];
  const summary = ["This drops the old secret of the prefix: objects that only it decrypts become unreadable."];
  await confirm({ summary, question: "Drop it?" }, options);
  if (options.dryRun) return { secrets: [place], lines };
  await putInForce({ ...inForce([own], options), waits: true }, options);
  // Objects that were encrypted by the old one since the first look, and acknowledged in time.
  await refuseOthers(own, options);
  return { secrets: [place], lines };
}

/** Throws USAGE where the rules cannot decrypt objects any more once this prefix has the secret `id` alone. */
async function refuseOthers(id: string, options: StepOptions): Promise<void> {
  const { prefix, rules } = options;
  const others = rules.filter((rule) => rule.prefix !== prefix);
  const known = await Promise.all(
    others.map(async (rule) => ({ prefix: rule.prefix, ids: await Promise.all(rule.secrets.map(idOf)) })),
  );
  const after = [...known, { prefix, ids: [id] }];
  const isLeft = (record: ManifestRecord): boolean => {
    const secret = isTombstone(record) ? undefined : record.encryption?.secret;
    if (secret === undefined) return false;
    return !after.some((rule) => record.key.startsWith(rule.prefix) && rule.ids.includes(secret));
  };
  refuseLeft(await withContext(options, READING, (context) => objectsLeft(prefix, isLeft, context)), "");
}

/** The name of a secret. */
async function idOf(place: SecretLocation): Promise<string> {
  return (await openSecret(await readSecret(place))).id;
}

function isSame(a: SecretLocation, b: SecretLocation): boolean {
  return a.file !== undefined && a.file === b.file;
}

function usage(message: string): AgaroseError {
  return new AgaroseError("USAGE", message);
}
