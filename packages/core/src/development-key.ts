/** The key pair of local worlds. Everyone knows it, so it proves nothing: only worlds on one's own machine trust it. */

/** The private key as base64 of 32 bytes, and the public key as configurations have it. */
export const DEVELOPMENT_KEY = {
  /** The SHA-256 of "agarose development key". */
  privateKey: "Gjy15VoMsNJskuQe3UxHkszasYTtq9WqApcA94To0kw=",
  publicKey: "ed25519:neL+dPiLuIEIMiFehMeiqH0impikBkQJAJEfbEZwzbo=",
} as const;
