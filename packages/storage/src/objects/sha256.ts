/**
 * SHA-256 by Node's one-shot hash, for gigabytes.
 *
 * WebCrypto copies its input to another thread, and in Node that copy takes longer than the hash itself.
 */
import { hash } from "node:crypto";
import type { Sha256 } from "@agarose/core";

/** Returns the SHA-256 of `bytes`, 32 bytes. Synchronous inside. */
export const nodeSha256: Sha256 = async (bytes) => hash("sha256", bytes, "buffer");
