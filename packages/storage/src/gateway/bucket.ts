/** The one bucket that a gateway has: the deployment. */
export const BUCKET = "agarose";
