/**
 * Where each region's keys come from: a profile, environment variables or a command, by region, by provider or for all.
 */
import { fromIni } from "@aws-sdk/credential-provider-ini";
import type { S3ClientConfig } from "@aws-sdk/client-s3";
import * as v from "valibot";
import type { Config, CredentialSource, RegionConfig } from "../config/config.ts";
import { runUserCommand } from "../config/user-command.ts";

/** The SDK's credential provider, which is called before the first request and before keys expire. */
type Provider = NonNullable<S3ClientConfig["credentials"]>;
/** A key pair, and when it expires. */
interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** The keys of one region. */
export interface RegionCredentials {
  /** Undefined for the SDK's default chain of environment, profiles and instance roles. */
  readonly provider: Provider | undefined;
  /** Names the source for error messages; contains no secret. */
  readonly origin: string;
}

/** Keys that end within this time are refetched. */
const EXPIRY_MARGIN_MS = 5 * 60_000;

/** The output of a `credential_process`; see "Sourcing credentials with an external process" in the AWS CLI guide. */
const processOutput = v.object({
  Version: v.literal(1),
  AccessKeyId: v.pipe(v.string(), v.minLength(1)),
  SecretAccessKey: v.pipe(v.string(), v.minLength(1)),
  SessionToken: v.optional(v.string()),
  Expiration: v.optional(v.pipe(v.string(), v.isoTimestamp())),
});

/**
 * Returns a function that finds the credentials of a region: its own, then its provider's, then those for all.
 * Regions with the same source share its keys, so that a command runs once.
 *
 * @param env the process's environment.
 */
export function credentialsByRegion(
  { credentials, providers }: Pick<Config, "credentials" | "providers">,
  env: NodeJS.ProcessEnv,
): (region: RegionConfig) => RegionCredentials {
  const shared = new Map<string, Provider>();
  const providerOf = (source: CredentialSource): Provider => {
    const id = JSON.stringify(source);
    const provider = shared.get(id) ?? openSource(source, env);
    shared.set(id, provider);
    return provider;
  };
  return (region) => {
    const [source, field] = region.credentials
      ? [region.credentials, `region ${region.name}`]
      : providers[region.provider]
        ? [providers[region.provider]!.credentials, `provider ${region.provider}`]
        : [credentials, "all regions"];
    if (source === undefined) return { provider: undefined, origin: defaultOrigin(env) };
    return { provider: providerOf(source), origin: `${nameOf(source)} (\`credentials\` of ${field})` };
  };
}

function nameOf({ profile, credentialsFile, env, command }: CredentialSource): string {
  if (profile !== undefined) {
    return `AWS profile ${JSON.stringify(profile)}${credentialsFile === undefined ? "" : ` in ${credentialsFile}`}`;
  }
  if (env) return `environment variables ${env.accessKeyId} and ${env.secretAccessKey}`;
  return `command ${JSON.stringify(command?.[0])}`;
}

/** As the SDK's default chain does: a named profile precedes keys in the environment. */
function defaultOrigin(env: NodeJS.ProcessEnv): string {
  if (env["AWS_PROFILE"]) return `AWS profile ${JSON.stringify(env["AWS_PROFILE"])} (AWS_PROFILE)`;
  if (env["AWS_ACCESS_KEY_ID"]) return "environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  return "the AWS default chain (set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)";
}

function openSource(
  { profile, credentialsFile, env: names, command }: CredentialSource,
  env: NodeJS.ProcessEnv,
): Provider {
  if (profile !== undefined) return fromIni({ profile, ...(credentialsFile && { filepath: credentialsFile }) });
  if (names) return async () => keysInEnvironment(names, env);
  return untilExpiry(() => keysFromCommand(command!));
}

function keysInEnvironment(names: NonNullable<CredentialSource["env"]>, env: NodeJS.ProcessEnv): Keys {
  const valueOf = (name: string): string => {
    const value = env[name];
    if (value) return value;
    throw new CredentialsProviderError(`environment variable ${name} is not set`);
  };
  return {
    accessKeyId: valueOf(names.accessKeyId),
    secretAccessKey: valueOf(names.secretAccessKey),
    ...(names.sessionToken && { sessionToken: valueOf(names.sessionToken) }),
  };
}

async function keysFromCommand(command: readonly string[]): Promise<Keys> {
  const said = JSON.stringify(command[0] ?? "");
  const output = await runUserCommand(command).catch((error: unknown) => {
    if ((error as Error).name === "AbortError") throw error;
    throw new CredentialsProviderError((error as Error).message);
  });
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(), processOutput), output);
  if (!result.success) {
    const field = v.getDotPath(result.issues[0]);
    const problem = field === null ? "no credential_process JSON" : `a wrong or missing ${field}`;
    throw new CredentialsProviderError(`command ${said} printed ${problem}`);
  }
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = result.output;
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    ...(SessionToken && { sessionToken: SessionToken }),
    ...(Expiration && { expiration: new Date(Expiration) }),
  };
}

/** Keeps what `load` returns until it is about to expire; a failure is not kept. */
function untilExpiry(load: () => Promise<Keys>): () => Promise<Keys> {
  let latest: Promise<Keys> | undefined;
  return async () => {
    const before = latest;
    const keys = await before?.catch(() => undefined);
    const isFresh = keys && (keys.expiration?.getTime() ?? Infinity) > Date.now() + EXPIRY_MARGIN_MS;
    if (!isFresh && latest === before) latest = load();
    return latest!;
  };
}

/** Named as the SDK names the same failure of its own providers. */
class CredentialsProviderError extends Error {
  override readonly name = "CredentialsProviderError";
}
