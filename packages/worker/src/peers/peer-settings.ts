/** This PoP's name and the PoPs that it cooperates with, from the variables POP, PEERS and PEER_KEY. */
import * as v from "valibot";
import { json, parseVariables, requiredText, secret } from "../runtime/variables.ts";

/** Another PoP. */
export interface Peer {
  readonly name: string;
  /** Base URL of the PoP, without a slash at its end. */
  readonly url: string;
}

/** The peers of a PoP and the secret that they share. */
export interface PeerSettings {
  /** At least one. */
  readonly pops: readonly Peer[];
  /** Signs the messages between PoPs. */
  readonly key: string;
}

/** The settings of this room. */
export interface PopSettings {
  readonly pop: string;
  /** Undefined for a PoP on its own. */
  readonly peers?: PeerSettings | undefined;
}

const peerList = v.pipe(
  v.array(
    v.object({
      name: v.pipe(v.string(), v.nonEmpty("must not be empty")),
      url: v.pipe(
        v.string(),
        v.check((url) => /^https?:\/\//.test(url) && URL.canParse(url), "must be an http or https URL"),
        v.transform((url) => url.replace(/\/+$/, "")),
      ),
    }),
  ),
  v.check((all) => new Set(all.map(({ name }) => name)).size === all.length, "names a PoP twice"),
);

const peers = json(
  "The PoPs to cooperate with, each with `name` and `url`. All PoPs have one list, because a PoP ignores its own name. " +
    "`agarose deploy` writes it. `off`: the PoP stays on its own.",
  'JSON list of PoPs, or "off"',
  peerList,
  { fallback: "[]" },
);

/** The variables of this room. */
export const POP_VARIABLES = {
  POP: requiredText("The name of this PoP."),
  PEERS: {
    ...peers,
    schema: v.pipe(
      v.optional(v.string(), ""),
      v.transform((text): string | undefined => (text === "off" ? "[]" : text)),
      peers.schema,
    ),
  },
  PEER_KEY: secret("The secret that all peers share, which `agarose deploy` makes; without it the PoP is on its own."),
};

/** Checks the variables of this room. Throws CONFIG_INVALID. */
export function parsePopSettings(env: object): PopSettings {
  const { pop, peers: all, peerKey: key } = parseVariables(POP_VARIABLES, env);
  const pops = all.filter(({ name }) => name !== pop);
  return { pop, peers: pops.length > 0 && key !== undefined ? { pops, key } : undefined };
}
