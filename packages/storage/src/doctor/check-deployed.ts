/**
 * Checks of deployed PoPs by their own answers: places, entry, clocks, CORS, periods, buckets, keys
 * and peers.
 */
import { toAgaroseError } from "@agarose/core";
import { ADMIN_TOKEN_VARIABLE } from "../pops/admin-token.ts";
import type { Config } from "../config/config.ts";
import { regionsByName } from "../buckets/region-names.ts";
import { namesIn, PopClient, type HealthAnswer, type StatusAnswer } from "../pops/pop-client.ts";
import { judge, judgePlace, summaryOf } from "../pops/pop-report.ts";
import type { Check } from "./check.ts";

type Pop = Config["pops"][number];
type State = Check["state"];

interface DeployedOptions {
  readonly fetch: typeof globalThis.fetch;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
}

/** Signed URLs forgive a minute. */
const SKEW_MS_MAX = 60_000;
const ORIGIN = "https://app.example";
const HEADERS_NEEDED = ["range", "if-match", "authorization"];
const HEADERS_EXPOSED = ["etag", "content-range", "x-agarose-error", "x-agarose-read"];

/** Checks every PoP of the configuration. Never rejects. */
export async function checkDeployed(config: Config, options: DeployedOptions): Promise<Check[]> {
  if (config.pops.length === 0) {
    const message = 'the configuration names no PoPs: add "pops": [{ "name", "url" }]';
    return [{ subject: "configuration", name: "pops", state: "fail", message }];
  }
  return (await Promise.all(config.pops.map((pop) => new PopCheck(pop, config, options).run()))).flat();
}

class PopCheck {
  readonly #pop: Pop;
  readonly #config: Config;
  readonly #client: PopClient;
  readonly #nowMs: () => number;
  readonly #checks: Check[] = [];

  constructor(pop: Pop, config: Config, { fetch, nowMs }: DeployedOptions) {
    this.#pop = pop;
    this.#config = config;
    this.#client = new PopClient(pop, { fetch, origin: ORIGIN });
    this.#nowMs = nowMs;
  }

  async run(): Promise<Check[]> {
    const health = await this.#ask("health", () => this.#client.health());
    if (!health) return this.#checks;
    this.#judgeHealth(health.answer, health.headers);
    await this.#preflight();
    if (!this.#client.hasToken) {
      this.#add("status", "warn", `its state was not asked for: set ${ADMIN_TOKEN_VARIABLE} to its ADMIN_TOKEN`);
      return this.#checks;
    }
    const status = await this.#ask("status", () => this.#client.status());
    if (!status) return this.#checks;
    const { answer: state, placement } = status;
    const { summary, periodErrors } = summaryOf(state, this.#nowMs());
    const facts = { placement, wanted: this.#pop.placement, isEverywhere: Boolean(state.continent) };
    const place = judgePlace(summary.place, facts);
    for (const warning of place.warnings) this.#add("place", "warn", warning);
    this.#all("place", place, place.warnings.length > 0 ? undefined : this.#unplaced(state, placement));
    const periods = judge(summary, periodErrors);
    for (const warning of periods.warnings) this.#add("egress", "warn", warning);
    this.#all("periods and regions", periods, undefined);
    this.#judgeRegions(state);
    this.#judgeKeys(state);
    this.#judgePeers(state);
    return this.#checks;
  }

  #judgeHealth({ pop, entry, version }: HealthAnswer, headers: Headers): void {
    const { url, name } = this.#pop;
    if (pop === name) this.#add("health", "ok", `${url} answers`);
    else this.#add("health", "fail", `${url} is PoP ${JSON.stringify(pop)}: correct name or url in \`pops\``);
    if (entry !== undefined) this.#add("entry", "ok", `this machine enters Cloudflare at ${entry}`);
    if (version !== undefined) {
      this.#add("version", "ok", `${version}; \`wrangler deployments list\` shows the same for ${name}`);
    }
    const dateMs = Date.parse(headers.get("date") ?? "");
    // The Date header counts whole seconds. A PoP of a local world sends none: Cloudflare and Node add it.
    const skewMs = Math.round(this.#nowMs() - dateMs - 500);
    if (Math.abs(skewMs) <= SKEW_MS_MAX) this.#add("clock", "ok", "agrees with this machine");
    else if (!Number.isNaN(dateMs)) {
      const side = skewMs > 0 ? "behind" : "ahead of";
      const advice = "signed URLs forgive 60 s: set the clock that is wrong";
      this.#add("clock", "fail", `${Math.round(Math.abs(skewMs) / 1000)} s ${side} this machine: ${advice}`);
    }
    const allowed = headers.get("access-control-allow-origin");
    const exposed = namesIn(headers.get("access-control-expose-headers"));
    const hidden = HEADERS_EXPOSED.filter((header) => !exposed.has(header));
    if (allowed === "*" && hidden.length === 0) this.#add("cors", "ok", "any origin may read");
    else {
      const what = allowed === "*" ? `hides ${hidden.join(", ")}` : `allows ${JSON.stringify(allowed)}, not any origin`;
      this.#add("cors", "fail", `the answer ${what}: something between you and the Worker changes its headers`);
    }
  }

  async #preflight(): Promise<void> {
    try {
      const allowed = await this.#client.preflight(HEADERS_NEEDED);
      const missing = HEADERS_NEEDED.filter((name) => !allowed.has(name));
      if (missing.length === 0) return this.#add("preflight", "ok", "the headers of reads are allowed");
      const what = `does not allow ${missing.join(", ")}`;
      this.#add("preflight", "fail", `the answer to OPTIONS ${what}: let OPTIONS through to the Worker`);
    } catch (error) {
      this.#add("preflight", "fail", `OPTIONS fails (${toAgaroseError(error).message}): let it through to the Worker`);
    }
  }

  /** The finding for a PoP without a place. */
  #unplaced({ place, continent }: StatusAnswer, placement: string | null): Found {
    if (this.#pop.node) return { state: "ok", message: "your own machine" };
    if (continent) return { state: "ok", message: `one Worker everywhere; this machine reads from ${continent}` };
    if (place && placement === null && this.#pop.placement !== undefined) {
      const message = "Cloudflare does not say where it ran (cf-placement): deploy it with its placement";
      return { state: "warn", message };
    }
    if (place) return { state: "ok", message: `${place.location}${placement === null ? "" : `, ${placement}`}` };
    const advice = "`agarose init` writes placement and LOCATION of PoPs";
    return { state: "warn", message: `it has no LOCATION, so its Durable Objects may be anywhere: ${advice}` };
  }

  #judgeRegions({ regions, isolate }: StatusAnswer): void {
    const wanted = regionsByName(this.#config.regions).map(({ name }) => name);
    const served = regions.map(({ name }) => name);
    const missing = wanted.filter((name) => !served.includes(name));
    const unknown = served.filter((name) => !wanted.includes(name));
    if (missing.length + unknown.length === 0) this.#add("buckets", "ok", `knows ${served.length} regions`);
    else if (served.length === 0) this.#add("buckets", "warn", "has measured none yet: wait a minute, and ask again");
    else {
      const lacks = missing.length > 0 ? [`lacks ${missing.join(", ")}`] : [];
      const has = unknown.length > 0 ? [`has ${unknown.join(", ")}, which the configuration does not name`] : [];
      const advice = "deploy it again with REGIONS of the configuration";
      this.#add("buckets", "fail", `${[...lacks, ...has].join(" and ")}: ${advice}`);
    }
    const denied = isolate.deniedRegions ?? [];
    if (denied.length === 0) return this.#add("denials", "ok", "no bucket has refused it");
    const advice = "check BUCKET_CREDENTIALS, the binding, and that public buckets are public";
    this.#add("denials", "fail", `${denied.join(", ")} refused it: ${advice}`);
  }

  #judgeKeys({ publisherKeys }: StatusAnswer): void {
    if (publisherKeys === undefined) return;
    const own = new Set(publisherKeys);
    const wanted = new Set(this.#config.publicKeys ?? []);
    if (own.size === wanted.size && [...own].every((key) => wanted.has(key))) {
      return this.#add("keys", "ok", own.size === 0 ? "unsigned, as the configuration" : "those of the configuration");
    }
    const advice = "run `agarose deploy`, or set PUBLISHER_KEYS of a PoP on Node";
    this.#add("keys", "fail", `it trusts ${own.size} keys, and not those of the configuration: ${advice}`);
  }

  #judgePeers({ peers, continent }: StatusAnswer): void {
    const others = this.#config.pops.filter(({ name }) => name !== this.#pop.name);
    if (others.length === 0 || continent) return;
    if (!peers) {
      const message =
        "works without peers: PEERS or PEER_KEY is not set. `agarose deploy` sets both, unless PEERS is off";
      return this.#add("peers", "warn", message);
    }
    const lost = peers.peers.filter(({ down, silent }) => down || silent).map(({ name }) => name);
    if (lost.length === 0)
      return this.#add("peers", "ok", `hears from ${peers.peers.map(({ name }) => name).join(", ")}`);
    const advice = "check that all PoPs have one PEER_KEY, and the urls in `pops`";
    this.#add("peers", "fail", `does not hear from ${lost.join(", ")}: ${advice}`);
  }

  async #ask<T>(name: string, question: () => Promise<T>): Promise<T | undefined> {
    try {
      return await question();
    } catch (error) {
      const { code, message } = toAgaroseError(error, "SOURCE_FAILED");
      this.#add(name, "fail", `${code}: ${message}`);
      return undefined;
    }
  }

  /** One line for each problem; otherwise one for what is well. */
  #all(name: string, { problems, remarks }: { problems: string[]; remarks: string[] }, found: Found | undefined): void {
    for (const problem of problems) this.#add(name, "fail", problem);
    for (const remark of remarks) this.#add(name, "ok", remark);
    if (problems.length > 0) return;
    if (found) this.#add(name, found.state, found.message);
    else if (remarks.length === 0) this.#add(name, "ok", "the last period was in time, and no region is down");
  }

  #add(name: string, state: State, message: string): void {
    this.#checks.push({ subject: this.#pop.name, name, state, message });
  }
}

interface Found {
  readonly state: State;
  readonly message: string;
}
