/**
 * SHA-256 by Node's own one-shot hash, for what is hashed by the gigabyte.
 *
 * WebCrypto copies its input to a thread of its own, and in Node that copy takes this thread longer than the hash would.
 */
import { hash } from "node:crypto";
import type { Sha256 } from "@agarose/core";

export const nodeSha256: Sha256 = async (bytes) => hash("sha256", bytes, "buffer");
