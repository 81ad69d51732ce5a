/** The bucket policy by which browsers read objects. Not every provider has policies. */

/** A bucket policy that lets anyone read objects, and nothing else. */
export function publicReadPolicy(bucket: string): string {
  return JSON.stringify({ Version: "2012-10-17", Statement: [publicReadStatement(bucket)] });
}

/** The one statement of that policy. */
export function publicReadStatement(bucket: string) {
  return { Effect: "Allow", Principal: "*", Action: "s3:GetObject", Resource: `arn:aws:s3:::${bucket}/*` };
}
