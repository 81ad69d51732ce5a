/**
 * Whose manifests a PoP uses: PUBLISHER_KEYS and UNSIGNED in wrangler.toml, as the configuration says. Pure.
 */
import { AgaroseError } from "@agarose/core";
import type { Config } from "../../lib/config.ts";

/** A PoP and its variables in wrangler.toml. */
export interface PopVariables {
  readonly name: string;
  readonly vars: Readonly<Record<string, unknown>>;
}

/** The two variables as they are to be. */
export interface TrustVariables {
  readonly PUBLISHER_KEYS: string;
  readonly UNSIGNED: string;
}

/** The variables for a configuration; undefined for one that says nothing, such as that of a local world. */
export function trustVariables(config: Config | undefined): TrustVariables | undefined {
  if (!config?.publicKeys && !config?.unsigned) return undefined;
  return { PUBLISHER_KEYS: JSON.stringify(config.publicKeys ?? []), UNSIGNED: String(config.unsigned ?? false) };
}

/** Whether the variables of a PoP have to be written. */
export function differs({ vars }: PopVariables, wanted: TrustVariables): boolean {
  return vars["PUBLISHER_KEYS"] !== wanted.PUBLISHER_KEYS || String(vars["UNSIGNED"]) !== wanted.UNSIGNED;
}

/** What is wrong with a PoP of which nothing says whose manifests it uses: it would refuse every request. */
export function trustProblems(pops: readonly PopVariables[], wanted: TrustVariables | undefined): string[] {
  if (wanted) return [];
  return pops.flatMap(({ name, vars }) => {
    const hasKeys = ![undefined, "", "[]"].includes(vars["PUBLISHER_KEYS"] as string | undefined);
    if (hasKeys !== (String(vars["UNSIGNED"]) === "true")) return [];
    return [
      `wrangler.toml needs either PUBLISHER_KEYS or UNSIGNED = "true" in [env.${name}.vars]: make a key with ` +
        "`agarose keys new`, and deploy with the configuration that names it",
    ];
  });
}

/** `text` of wrangler.toml with `variables` in [env.`pop`.vars]. Throws CONFIG_INVALID where there is no such table. */
export function withTrustVariables(text: string, pop: string, variables: TrustVariables): string {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => line.trim() === `[env.${pop}.vars]`);
  const entries = Object.entries(variables).map(([name, value]) => [name, `${name} = '${value}'`] as const);
  if (start < 0) {
    const wanted = entries.map(([, line]) => line).join(", ");
    throw new AgaroseError(
      "CONFIG_INVALID",
      `Wrangler's configuration has no line [env.${pop}.vars]: write there yourself: ${wanted}`,
      { pop },
    );
  }
  // A line of the JSON in REGIONS may begin with a bracket, too, but not with a letter behind it.
  const length = lines.slice(start + 1).findIndex((line) => /^\s*\[+[A-Za-z_]/.test(line));
  const end = length < 0 ? lines.length : start + 1 + length;
  for (const [name, line] of entries) {
    const at = lines.findIndex(
      (old, index) => index > start && index < end && new RegExp(`^\\s*${name}\\s*=`).test(old),
    );
    if (at < 0) lines.splice(start + 1, 0, line);
    else lines[at] = line;
  }
  return lines.join("\n");
}
