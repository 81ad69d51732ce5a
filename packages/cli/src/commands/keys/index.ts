/**
 * `agarose keys`: the key pair by which a publisher signs manifests, and the secrets that encrypt objects.
 */
import type { Command } from "commander";
import { acceptUnsigned } from "@agarose/core";
import { YES } from "../../lib/confirm.ts";
import { findConfig, loadConfig } from "../../lib/config.ts";
import type { GlobalOptions } from "../../lib/context.ts";
import { printResult } from "../../lib/output.ts";
import { configuredPublicKey } from "../../lib/signing.ts";
import { readFields, signingWith, writeFields } from "../../lib/files/config-fields.ts";
import { tryPutInForce } from "./in-force.ts";
import { createKey } from "./new-key.ts";
import { makeSecret, type SecretOptions } from "./secret.ts";
import { rotate, type RotateOptions } from "./rotate.ts";

/**
 * Adds `agarose keys` and its verbs. Keys are Ed25519: PEM for the private, `ed25519:…` for the
 * public.
 */
export function register(program: Command): void {
  const keys = program
    .command("keys")
    .description("make, show or replace the key that signs manifests; make or replace secrets");
  keys
    .command("new")
    .description("write a new private key, and its public key into a configuration that has none")
    .argument("[file]", "file of the private key, which must not exist", "agarose.key.pem")
    .action((file: string, _options: unknown, command: Command) =>
      create(file, command.optsWithGlobals<GlobalOptions>()),
    );
  keys
    .command("show")
    .description("print the public key of the configured private key, and those that are trusted")
    .action((_options: unknown, command: Command) => show(command.optsWithGlobals<GlobalOptions>()));
  keys
    .command("rotate")
    .description("replace the signing key in three steps; each prints what to do before the next")
    .argument("<file>", "file of the new private key; the first step writes it")
    .option("--sign", "second step: sign with the new key")
    .option("--finish", "third step: trust the new key alone")
    .option("--dry-run", "with --finish: check, and say what would be dropped")
    .option(...YES)
    .action((file: string, _options: unknown, command: Command) =>
      rotate(file, command.optsWithGlobals<RotateOptions>()),
    );
  keys
    .command("secret")
    .description("make the secret that encrypts objects, or replace it in three steps; each prints what comes next")
    .argument("<file>", "file of the new secret; the first step writes it")
    .option("--prefix <prefix>", "begins the keys of the objects; default: all", "")
    .option("--encrypt", "second step of a replacement: encrypt with the new secret")
    .option("--finish", "third step: drop the old secret")
    .option("--dry-run", "with --finish: check, and say what would be dropped")
    .option(...YES)
    .action((file: string, _options: unknown, command: Command) =>
      makeSecret(file, command.optsWithGlobals<SecretOptions>()),
    );
}

async function create(file: string, { config: given, json = false }: GlobalOptions): Promise<void> {
  const publicKey = await createKey(file);
  const path = await findConfig(given);
  const fields = await readFields(path);
  const isFirst = fields !== undefined && fields["publicKeys"] === undefined && fields["signing"] === undefined;
  if (isFirst) {
    const { unsigned: _unsigned, ...others } = fields;
    await writeFields(path, { ...others, publicKeys: [publicKey], signing: signingWith(file, path) });
    // What the buckets said until now was signed by nobody.
    const step = { config: await loadConfig(path), change: {}, trust: acceptUnsigned };
    await tryPutInForce(step, { ...(given !== undefined && { config: given }) });
  }
  printResult(json, { file, publicKey, config: isFirst ? path : undefined }, [
    `private key  ${file}: keep it secret, and out of version control`,
    `public key   ${publicKey}`,
    ...(isFirst
      ? [
          `configured   ${path} has both`,
          "then: `agarose init` and `agarose deploy`, which give the public key to the web app and the PoPs;",
          "if objects are stored already: `agarose upgrade --vouch`, which signs them",
        ]
      : fields
        ? [`${path} has a key already: \`agarose keys rotate\` replaces it; this one is not used`]
        : [
            `add them to ${path}: "publicKeys": ["${publicKey}"], "signing": ${JSON.stringify(signingWith(file, path))}`,
          ]),
  ]);
}

async function show({ config: path, json = false }: GlobalOptions): Promise<void> {
  const { signing, publicKeys = [] } = await loadConfig(await findConfig(path));
  const own = signing && !signing.command ? await configuredPublicKey(signing) : undefined;
  printResult(json, { signing: own, publicKeys }, [
    ...(own ? [`signs with  ${own}`] : []),
    ...publicKeys.map((key) => `trusts      ${key}`),
    ...(publicKeys.length === 0 ? ["trusts      every manifest, signed or not"] : []),
  ]);
}
