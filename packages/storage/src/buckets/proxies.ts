/**
 * The proxies that the environment names: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in either case. Node follows
 * them itself once it is told to.
 */
import http from "node:http";

type Environment = Readonly<Record<string, string | undefined>>;

/** As Node does: a proxy for each scheme, and the hosts without one. */
export interface Proxies {
  readonly HTTP_PROXY?: string;
  readonly HTTPS_PROXY?: string;
  readonly NO_PROXY?: string;
}

/** The proxies in `env`; undefined where it names none. As elsewhere, the names in lower case come first. */
export function proxiesOf(env: Environment): Proxies | undefined {
  const named = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined;
  const all = named("ALL_PROXY");
  const [plain, secure, none] = [named("HTTP_PROXY") ?? all, named("HTTPS_PROXY") ?? all, named("NO_PROXY")];
  if (plain === undefined && secure === undefined) return undefined;
  return {
    ...(plain !== undefined && { HTTP_PROXY: withScheme(plain) }),
    ...(secure !== undefined && { HTTPS_PROXY: withScheme(secure) }),
    ...(none !== undefined && { NO_PROXY: none }),
  };
}

/** `proxy:3128` is a proxy, too: curl and the AWS command line take it for http. */
function withScheme(proxy: string): string {
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

/** Makes `fetch` ask through the proxies of `env`. Returns how to undo it. Older versions of Node lack this. */
export function fetchThroughProxies(env: Environment): () => void {
  const proxies = proxiesOf(env);
  return proxies === undefined ? () => {} : (http.setGlobalProxyFromEnv?.({ ...proxies }) ?? (() => {}));
}
