/** The source of the Worker's reference pages, and the page of its configuration. */
import type { Variable } from "./variables.ts";
import type { ConfiguredRegion } from "../regions/region-settings.ts";
import { VARIABLES } from "./settings.ts";

export { signedText } from "../http/access.ts";
export { DESCRIBED_ROUTES, type DescribedRoute } from "../http/route-reference.ts";
export { LOG_EVENTS } from "./log.ts";
export { LOCATIONS } from "./durable-objects.ts";
export { METRICS, type MetricDescription } from "../http/metric-catalogue.ts";

/** The fields of an entry of REGIONS. */
const REGION_FIELDS: Readonly<Record<keyof ConfiguredRegion, string>> = {
  name: "Name of the region, as in manifests.",
  url: "Public base URL of the bucket, which plans give to clients.",
  popUrl: "Address that the PoP itself reads from, such as one inside the provider's network. Default: `url`.",
  binding: "Name of the R2 binding that the PoP reads through, without an HTTP request. Clients still read from `url`.",
  private: "`true`: reads must be signed with `BUCKET_CREDENTIALS`.",
  awsRegion: "The AWS region that requests are signed for. Default: `us-east-1`.",
  egressUsdPerGb:
    "The provider's price of reading a GB: the cache spares expensive regions, and its fills try cheap ones first. Default: 0.",
};

/** Names of all variables and secrets. */
export const VARIABLE_NAMES: readonly string[] = Object.keys(VARIABLES);

/** Returns the page as Markdown: one table of variables and one of secrets. */
export function workerReference(): string {
  const all: [string, Variable][] = Object.entries(VARIABLES);
  const variables = all.filter(([, { secret }]) => !secret);
  const secrets = all.filter(([, { secret }]) => secret);
  return [
    "# Worker configuration",
    "",
    "Variables and secrets of one PoP: `vars` of its environment in Wrangler's configuration, and `wrangler secret put`. A",
    "wrong value answers every route with `CONFIG_INVALID` and the variable's name.",
    "",
    "## Variables",
    "",
    "| variable | type | default | meaning |",
    "| --- | --- | --- | --- |",
    ...variables.map(([name, variable]) => row(name, variable, defaultOf(variable))),
    "",
    "## Secrets",
    "",
    "Set one with `wrangler secret put NAME --env POP`. Messages never contain its value.",
    "",
    "| secret | type | meaning |",
    "| --- | --- | --- |",
    ...secrets.map(([name, variable]) => row(name, variable)),
    "",
    "## Regions",
    "",
    "| field | meaning |",
    "| --- | --- |",
    ...Object.entries(REGION_FIELDS).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`),
    "",
  ].join("\n");
}

function row(name: string, { type, description }: Variable, ...columns: string[]): string {
  return `| ${[`\`${name}\``, type, ...columns, description].map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function defaultOf({ required, default: fallback }: Variable): string {
  if (required) return "required";
  return fallback ? `\`${fallback}\`` : "none";
}
