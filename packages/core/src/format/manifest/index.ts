/** The manifest: what one version of one object is and where its chunks are (docs/reference/format.md). */
export { checkCode } from "./check.ts";
export { type CodedStripe, codeStripe } from "./code-stripe.ts";
export { encodeManifest, refuseTooLarge } from "./encode.ts";
export { versionText } from "./identity.ts";
export {
  areSame,
  chunkNameOf,
  chunkRegions,
  CHUNKS_MAX,
  type Code,
  encodeHashes,
  type Encryption,
  type ExpectedManifest,
  type Extra,
  type Gzip,
  headerCharactersMax,
  HEADERS_ALLOWED,
  INLINE_BYTES_MAX,
  isFunctional,
  isTombstone,
  LEAF_LIST,
  type Manifest,
  MANIFEST_BYTES_MAX,
  mayKeepHeader,
  type ManifestRecord,
  STRIPE_BYTES_DEFAULT,
  STRIPE_BYTES_MAX,
  recordJson,
  type Tombstone,
} from "./manifest.ts";
export { checkPage, LeafList, PAGE_BYTES_MAX, pageRoot, PAGES_MAX, pageStripesOf } from "./pages.ts";
export { checkManifest, parseManifest } from "./parse.ts";
export { type ManifestDraft, sealManifest, sealTombstone } from "./seal.ts";
export {
  blockBytesOf,
  chunkBytes,
  leafListBytes,
  leafShape,
  type HashedObject,
  pageShape,
  stripeCount,
  type StripePart,
  stripeShape,
  type StripeShape,
} from "./stripe-shape.ts";
