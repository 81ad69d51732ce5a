/**
 * The help of `agarose keys`.
 */
import type { Command } from "commander";
import type { GlobalOptions } from "../../lib/context.ts";
import type { SecretOptions } from "./secret.ts";
import type { RotateOptions } from "./rotate.ts";
import { YES } from "../../ui/options.ts";

/** Adds `agarose keys` and its verbs. */
export function register(program: Command): void {
  const keys = program
    .command("keys")
    .description("make, show or replace the key that signs manifests; make or replace secrets");
  keys
    .command("new")
    .description("write a new private key, and its public key into a configuration that has none")
    .argument("[file]", "file of the private key, which must not exist", "agarose.key.pem")
    .action(async (file: string, _options: unknown, command: Command) =>
      (await import("./keys.ts")).create(file, command.optsWithGlobals<GlobalOptions>()),
    );
  keys
    .command("show")
    .description("print the public key of the configured private key, and those that are trusted")
    .action(async (_options: unknown, command: Command) =>
      (await import("./keys.ts")).show(command.optsWithGlobals<GlobalOptions>()),
    );
  keys
    .command("rotate")
    .description("replace the signing key in three steps; each prints what to do before the next")
    .argument("<file>", "file of the new private key; the first step writes it")
    .option("--sign", "second step: sign with the new key")
    .option("--finish", "third step: trust the new key alone")
    .option("--dry-run", "with --finish: check, and say what would be dropped")
    .option(...YES)
    .action(async (file: string, _options: unknown, command: Command) =>
      (await import("./rotate.ts")).rotate(file, command.optsWithGlobals<RotateOptions>()),
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
    .action(async (file: string, _options: unknown, command: Command) =>
      (await import("./secret.ts")).makeSecret(file, command.optsWithGlobals<SecretOptions>()),
    );
}
