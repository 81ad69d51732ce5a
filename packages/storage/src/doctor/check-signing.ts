/** Whose manifests count, and whether the key that signs is one of those that readers trust. */
import { toAgaroseError } from "@agarose/core";
import { keyIdOf, rawPublicKey } from "@agarose/core/format";
import type { Config } from "../config/config.ts";
import { formatCount } from "../maintenance/amounts.ts";
import { signingKeyId } from "../config/signing.ts";
import type { Check } from "./check.ts";

/** A warning in unsigned mode; a failure when readers would refuse what this machine signs. */
export async function checkSigning(config: Config): Promise<Check> {
  const { publicKeys, signing, unsigned } = config;
  const check = { subject: "publisher", name: "signing" };
  const warn = (message: string): Check => ({ ...check, state: "warn", message });
  if (unsigned) {
    return warn("every manifest is used, so who can write to one bucket decides what is read: run `agarose keys new`");
  }
  if (!publicKeys) {
    return warn(
      "buckets at addresses of this machine are read unsigned, and signed with the development key, which everyone " +
        "knows: if a tunnel or a proxy listens there, run `agarose keys new`",
    );
  }
  const trusted = `${formatCount(publicKeys.length, "public key")} trusted`;
  if (!signing) return { ...check, state: "ok", message: `${trusted}; nothing can be written without \`signing\`` };
  try {
    const keyId = await signingKeyId(config);
    const keyIds = await Promise.all(publicKeys.map((key) => keyIdOf(rawPublicKey(key) as Uint8Array<ArrayBuffer>)));
    if (keyIds.includes(keyId!)) return { ...check, state: "ok", message: `${trusted}, and one of them signs` };
    const message = `the key ${keyId} signs, and readers trust ${keyIds.join(", ")}: add it to \`publicKeys\``;
    return { ...check, state: "fail", message };
  } catch (error) {
    return { ...check, state: "fail", message: toAgaroseError(error).message };
  }
}
