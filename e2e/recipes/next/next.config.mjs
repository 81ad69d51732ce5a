export default {
  // For pages that no service worker controls yet: a PoP decodes.
  rewrites: () => [{ source: "/ec/:key*", destination: `${process.env.POP_URL}/o/:key*` }],
};
