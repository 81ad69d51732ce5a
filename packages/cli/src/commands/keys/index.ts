/**
 * `agarose keys`: the key pair by which a publisher signs manifests.
 */
import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { AgaroseError } from "@agarose/core";
import { findConfig, loadConfig } from "../../lib/config.ts";
import type { GlobalOptions } from "../../lib/context.ts";
import { printResult } from "../../lib/output.ts";
import { configuredPublicKey, newKeyPair } from "../../lib/signing.ts";

export function register(program: Command): void {
  const keys = program.command("keys").description("make or show the key that signs manifests");
  keys
    .command("new")
    .description("write a new private key, and print its public key")
    .argument("[file]", "file of the private key, which must not exist", "agarose.key.pem")
    .action((file: string, _options: unknown, command: Command) =>
      create(file, command.optsWithGlobals<GlobalOptions>()),
    );
  keys
    .command("show")
    .description("print the public key of the configured private key, and those that are trusted")
    .action((_options: unknown, command: Command) => show(command.optsWithGlobals<GlobalOptions>()));
}

async function create(file: string, { json = false }: GlobalOptions): Promise<void> {
  const { privateKey, publicKey } = newKeyPair();
  try {
    await writeFile(file, privateKey, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new AgaroseError("USAGE", `${file} cannot be written: ${(error as Error).message}`, { file }, error);
  }
  printResult(json, { file, publicKey }, [
    `private key  ${file}: keep it secret, and name it as signing.keyFile in agarose.config.json`,
    `public key   ${publicKey}: add it to publicKeys in agarose.config.json`,
  ]);
}

async function show({ config: path, json = false }: GlobalOptions): Promise<void> {
  const { signing, publicKeys = [] } = await loadConfig(await findConfig(path));
  const own = signing && !signing.command ? await configuredPublicKey(signing) : undefined;
  printResult(json, { signing: own, publicKeys }, [
    ...(own ? [`signs with  ${own}`] : []),
    ...publicKeys.map((key) => `trusts      ${key}`),
    ...(publicKeys.length === 0 ? ["trusts      every manifest: publicKeys is not set"] : []),
  ]);
}
