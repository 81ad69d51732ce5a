/** Tries a signer: one signature over what is not a manifest, so that a command asks for it once. */
import type { Signature, Signer } from "@agarose/core/format";

/** The message that signers sign to show that readers trust them. */
export const PROBE = new TextEncoder().encode("agarose-probe/1\n");

const signed = new WeakMap<Signer, Promise<Signature>>();

/** The signature of `sign` over `PROBE`. A signer that failed is asked again. */
export function probe(sign: Signer): Promise<Signature> {
  const known = signed.get(sign);
  if (known) return known;
  const signature = sign(PROBE);
  signed.set(sign, signature);
  signature.catch(() => signed.delete(sign));
  return signature;
}
