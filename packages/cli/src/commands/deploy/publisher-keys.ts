/** Whose manifests a PoP uses: PUBLISHER_KEYS and UNSIGNED in wrangler.toml, as the configuration says. Pure. */
import type { Config } from "@agarose/storage/config/config";

/** A PoP and its variables in wrangler.toml. */
export interface PopVariables {
  readonly name: string;
  readonly vars: Readonly<Record<string, unknown>>;
}

/** The two variables as they are to be. */
export type TrustVariables = Readonly<Record<"PUBLISHER_KEYS" | "UNSIGNED", string>>;

/** The variables for a configuration; undefined for one that says nothing, such as that of a local world. */
export function trustVariables(config: Config | undefined): TrustVariables | undefined {
  if (!config?.publicKeys && !config?.unsigned) return undefined;
  return { PUBLISHER_KEYS: JSON.stringify(config.publicKeys ?? []), UNSIGNED: String(config.unsigned ?? false) };
}

/** Whether the variables of a PoP have to be written. */
export function differs({ vars }: PopVariables, wanted: TrustVariables): boolean {
  return vars["PUBLISHER_KEYS"] !== wanted.PUBLISHER_KEYS || String(vars["UNSIGNED"]) !== wanted.UNSIGNED;
}

/** The problem of a PoP without public keys or unsigned mode: it would refuse every request. */
export function trustProblems(pops: readonly PopVariables[], wanted: TrustVariables | undefined): string[] {
  if (wanted) return [];
  return pops.flatMap(({ name, vars }) => {
    const hasKeys = ![undefined, "", "[]"].includes(vars["PUBLISHER_KEYS"] as string | undefined);
    if (hasKeys !== (String(vars["UNSIGNED"]) === "true")) return [];
    return [
      `Wrangler's configuration needs either PUBLISHER_KEYS or UNSIGNED = "true" in [env.${name}.vars]: make a key with ` +
        "`agarose keys new`, and deploy with the configuration that names it",
    ];
  });
}
