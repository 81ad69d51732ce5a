/** The one object that holds what a PoP knows of its peers. */
import type { Env } from "../env.ts";

const NAME = "peers";

export function peerState(env: Env): ReturnType<Env["PEER_STATE"]["get"]> {
  return env.PEER_STATE.get(env.PEER_STATE.idFromName(NAME));
}
