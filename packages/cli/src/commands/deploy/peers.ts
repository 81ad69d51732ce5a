/** The list of PoPs that cooperate: from `pops` of the command line's configuration into PEERS of every PoP. Pure. */
import * as v from "valibot";
import type { Config } from "@agarose/storage/config/config";
import type { PeerSteps, PopEnvironment, Step } from "./deployment.ts";

type PopAddress = Config["pops"][number];

/** The value of PEERS for a PoP that works alone. */
const PEERS_OFF = "off";

/**
 * Returns the steps by which all PoPs of the configuration cooperate. PoPs with `PEERS = "off"` are left alone.
 *
 * @param all every environment of wrangler.toml.
 * @param deployed names of those that are deployed.
 * @param addresses `pops` of the configuration.
 * @param hasKey whether PEER_KEY is among the secrets given.
 */
export function peerSteps(
  all: readonly PopEnvironment[],
  deployed: readonly string[],
  addresses: readonly PopAddress[],
  hasKey: boolean,
): PeerSteps {
  const willing = all.filter(({ vars }) => vars["PEERS"] !== PEERS_OFF);
  const unnamed = willing.filter(({ name }) => !addresses.some((pop) => pop.name === name)).map(({ name }) => name);
  const warnings =
    unnamed.length > 0 && all.length > 1
      ? [
          `${unnamed.join(", ")} will not cooperate: add name and url to \`pops\` of agarose.config.json, and deploy again`,
        ]
      : [];
  const refusing = new Set(all.filter((pop) => !willing.includes(pop)).map(({ name }) => name));
  const pops = addresses.filter(({ name }) => !refusing.has(name)).map(({ name, url }) => ({ name, url }));
  const named = willing.filter(({ name }) => pops.some((pop) => pop.name === name));
  if (pops.length < 2 || named.length === 0) return { lists: [], keys: [], warnings };
  const list = JSON.stringify(pops);
  const lists = named
    .filter(({ vars }) => !isSameList(vars["PEERS"], pops))
    .map(({ name }): Step => ({ kind: "peers", pop: name, list }));
  const names = named.map(({ name }) => name);
  const now = names.filter((name) => deployed.includes(name));
  const key: Step = { kind: "peer-key", pop: now.join(","), others: names.filter((name) => !now.includes(name)) };
  return { lists, keys: hasKey || now.length === 0 ? [] : [key], warnings };
}

const PEERS_SHAPE = v.array(v.object({ name: v.string(), url: v.string() }));

function isSameList(text: unknown, pops: readonly PopAddress[]): boolean {
  try {
    const list = v.parse(PEERS_SHAPE, JSON.parse(String(text)));
    const line = ({ name, url }: Pick<PopAddress, "name" | "url">): string => `${name} ${url.replace(/\/+$/, "")}`;
    return list.map(line).toSorted().join("\n") === pops.map(line).toSorted().join("\n");
  } catch {
    return false;
  }
}
