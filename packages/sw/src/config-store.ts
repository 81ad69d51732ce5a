/**
 * The configuration file of a worker, kept in Cache Storage: a worker that the browser restarts reads at once by the copy
 * it has, and fetches the file anew behind that.
 */
import { AgaroseError } from "@agarose/core";
import { checkPrefix, parseConfig, type ClientConfig, type ConfigFile, type ConfigSource } from "./config.ts";

export interface ConfigPorts {
  readonly fetch: typeof globalThis.fetch;
  /** Absent where the browser has none. */
  readonly caches: CacheStorage | undefined;
}

export const CACHE_NAME = "agarose";

/**
 * The configuration of a worker that starts. Where it comes from a copy that turns out to be outdated, `onChange` is told.
 * Rejects with CONFIG_INVALID when there is neither a sound file nor a sound copy.
 */
export async function loadConfig(
  source: ConfigSource,
  ports: ConfigPorts,
  onChange: (config: ClientConfig) => void = () => {},
): Promise<ClientConfig> {
  if (!("url" in source)) return source.config;
  const copy = await readCopy(source, ports).catch(() => undefined);
  const fresh = fetchConfig(source, ports);
  if (!copy) return fresh;
  const tellChange = (config: ClientConfig): void => {
    if (JSON.stringify(config) !== JSON.stringify(copy)) onChange(config);
  };
  fresh.then(tellChange, () => {});
  return copy;
}

/** The file from the network, kept for the next start. */
export async function fetchConfig({ url, prefix }: ConfigFile, ports: ConfigPorts): Promise<ClientConfig> {
  const { fetch } = ports;
  const response = await fetch(url, { cache: "no-cache", redirect: "error" }).catch((error: unknown) => {
    throw invalid(url, error, "could not be fetched");
  });
  if (response.status !== 200) throw invalid(url, undefined, `was answered with ${response.status}`);
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw invalid(url, error, `is not JSON (${text.length} characters; is it a page in its place?)`);
  }
  const config = checkPrefix(parseConfig(json, url), prefix);
  await writeCopy(url, text, ports).catch(() => {});
  return config;
}

async function readCopy({ url, prefix }: ConfigFile, { caches }: ConfigPorts): Promise<ClientConfig | undefined> {
  const copy = await (await caches?.open(CACHE_NAME))?.match(url);
  return copy && checkPrefix(parseConfig(await copy.json(), url), prefix);
}

/** A full or forbidden storage only costs the next start a round trip. */
async function writeCopy(url: string, text: string, { caches }: ConfigPorts): Promise<void> {
  await (await caches?.open(CACHE_NAME))?.put(url, new Response(text));
}

function invalid(url: string, cause: unknown, problem: string): AgaroseError {
  return new AgaroseError(
    "CONFIG_INVALID",
    `configuration ${url} ${problem}: it must be JSON with "pops" and "regions"`,
    { url },
    cause,
  );
}
