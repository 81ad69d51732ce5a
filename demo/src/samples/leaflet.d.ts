/** Leaflet as a module, which has the types of its script. */
declare module "leaflet/dist/leaflet-src.esm.js" {
  export * from "leaflet";
}
