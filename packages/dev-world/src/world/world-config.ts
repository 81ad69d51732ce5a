/** The configuration by which the CLI works on a world. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DEVELOPMENT_KEY } from "@agarose/core/format";
import type { WorldOptions } from "./world-options.ts";

/** The parts of a world that the CLI needs. */
export interface WorldPlaces {
  readonly regions: readonly {
    readonly name: string;
    readonly provider: string;
    readonly latencyMs: number;
    readonly endpoint: string;
    readonly bucket: string;
  }[];
  readonly pops: readonly { readonly name: string; readonly url: string }[];
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** The `ADMIN_TOKEN` of every PoP. */
  readonly adminToken: string;
}

const FILE = "agarose.config.json";
const PROFILE = "agarose-dev";

/** Writes `agarose.config.json`, the signing key, the admin token and an AWS profile. Returns the path of the first. */
export async function writeWorldConfig(
  folder: string,
  options: WorldOptions,
  { regions, pops, credentials, adminToken }: WorldPlaces,
): Promise<string> {
  const credentialsFile = join(folder, "credentials");
  const keys = `aws_access_key_id = ${credentials.accessKeyId}\naws_secret_access_key = ${credentials.secretAccessKey}\n`;
  await writeFile(credentialsFile, `[${PROFILE}]\n${keys}`, { mode: 0o600 });
  const keyFile = join(folder, "signing.key");
  await writeFile(keyFile, DEVELOPMENT_KEY.privateKey, { mode: 0o600 });
  const adminTokenFile = join(folder, "admin-token");
  await writeFile(adminTokenFile, adminToken, { mode: 0o600 });
  const config = {
    publicKeys: [DEVELOPMENT_KEY.publicKey],
    signing: { keyFile },
    regions: regions.map((region) => ({ ...region, awsRegion: "us-east-1" })),
    code: options.code,
    survive: { regions: 1, providers: 0 },
    pops: pops.map((pop) => ({ ...pop, adminTokenFile })),
    credentials: { profile: PROFILE, credentialsFile },
  };
  const path = join(folder, FILE);
  await writeFile(path, `${JSON.stringify(config, undefined, 2)}\n`);
  return path;
}
