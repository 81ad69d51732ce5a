/**
 * The configuration file of a worker, kept in Cache Storage: a worker that the browser restarts reads at once by the
 * copy it has, and fetches the file again in the background.
 */
import { AgaroseError, HAS_MESSAGES, toAgaroseError } from "@agarose/core";
import { checkPrefix, parseConfig, type ClientConfig, type ConfigFile, type ConfigSource } from "./config.ts";
import { CACHE_NAME } from "./cache-names.ts";

/** What loading a configuration uses of the browser. */
export interface ConfigPorts {
  readonly fetch: typeof globalThis.fetch;
  /** Absent where the browser has none. */
  readonly caches: CacheStorage | undefined;
}

/**
 * The configuration of a worker that starts. If it comes from an outdated copy, `onChange` gets the new one later.
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

/**
 * The file from the network, kept for the next start. Rejects with CONFIG_INVALID, whose cause is a TypeError when
 * nothing was answered.
 */
export async function fetchConfig({ url, prefix }: ConfigFile, ports: ConfigPorts): Promise<ClientConfig> {
  const { fetch } = ports;
  try {
    const response = await fetch(url, { cache: "no-cache", redirect: "error" });
    const { status } = response;
    const type = response.headers.get("content-type");
    // An upload or an object of the same origin must not become a configuration.
    if (status !== 200 || !type?.match(/^application\/json\b/i)) {
      const found = HAS_MESSAGES && `answered ${status} of type ${type}, 200 of type application/json is expected`;
      throw new AgaroseError("CONFIG_INVALID", found, { status, type });
    }
    const text = await response.text();
    const config = checkPrefix(parseConfig(JSON.parse(text), url), prefix);
    await writeCopy(url, text, ports).catch(() => {});
    return config;
  } catch (error) {
    throw toAgaroseError(error, "CONFIG_INVALID");
  }
}

async function readCopy({ url, prefix }: ConfigFile, { caches }: ConfigPorts): Promise<ClientConfig | undefined> {
  const copy = await (await caches?.open(CACHE_NAME))?.match(url);
  return copy && checkPrefix(parseConfig(await copy.json(), url), prefix);
}

/** A full or forbidden storage only costs the next start a round trip. */
async function writeCopy(url: string, text: string, { caches }: ConfigPorts): Promise<void> {
  await (await caches?.open(CACHE_NAME))?.put(url, new Response(text));
}
