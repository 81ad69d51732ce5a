/**
 * `agarose keys`: the key pair by which a publisher signs manifests, and the secrets that encrypt objects. Keys are
 * Ed25519: PEM for the private, `ed25519:…` for the public.
 */
import { loadConfig } from "@agarose/storage/config/config";
import { configPath } from "../../lib/config-path.ts";
import type { GlobalOptions } from "../../lib/context.ts";
import { printResult } from "../../ui/output.ts";
import { configuredPublicKey, newKeyPair } from "@agarose/storage/config/signing";
import { writeNewSecret } from "@agarose/storage/files/whole-file";
import { readFields, signingWith, writeFields } from "../../lib/files/config-fields.ts";
import { tryPutInForce } from "./in-force.ts";

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
