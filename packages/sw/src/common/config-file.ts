/**
 * The configuration file of a worker, with a copy in Cache Storage: a worker that the browser restarts reads at once by
 * the copy it has, and fetches the file again in the background (`worker/live-client.ts`).
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { HAS_MESSAGES } from "@agarose/core/features";
import { parseFile, type ClientConfig, type ConfigFile } from "./config.ts";
import { CACHE_NAME } from "./cache-names.ts";

/** The browser functions that load a configuration. */
export interface ConfigPorts {
  readonly fetch: typeof globalThis.fetch;
  /** Absent where the browser has none. */
  readonly caches: CacheStorage | undefined;
}

/**
 * The file from the network, kept for the next start once `use` has taken it. Rejects with CONFIG_INVALID, whose cause
 * is a TypeError when nothing was answered, or with what `use` throws.
 */
export async function fetchConfig(
  file: ConfigFile,
  ports: ConfigPorts,
  use: (config: ClientConfig) => void = () => {},
): Promise<ClientConfig> {
  const { fetch } = ports;
  const { url } = file;
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
    const config = parseFile(JSON.parse(text), file);
    // A copy that no client can use would keep the next worker from starting.
    use(config);
    await writeCopy(url, text, ports).catch(() => {});
    return config;
  } catch (error) {
    throw toAgaroseError(error, "CONFIG_INVALID");
  }
}

/** The copy that was kept; undefined if there is none. Rejects where it is unsound, or storage is forbidden. */
export async function readCopy(file: ConfigFile, { caches }: ConfigPorts): Promise<ClientConfig | undefined> {
  const copy = await (await caches?.open(CACHE_NAME))?.match(file.url);
  return copy && parseFile(await copy.json(), file);
}

/** A full or forbidden storage only costs the next start a round trip. */
async function writeCopy(url: string, text: string, { caches }: ConfigPorts): Promise<void> {
  await (await caches?.open(CACHE_NAME))?.put(url, new Response(text));
}
