/** Answers requests from an R2 bucket by the code that the PoP reads it with. For tests. */
import { readBucket } from "../src/regions/buckets/bound-bucket.ts";

export default {
  fetch(request: Request, env: { readonly BUCKET: R2Bucket }): Promise<Response> {
    return readBucket(env.BUCKET, decodeURIComponent(new URL(request.url).pathname.slice(1)), {
      method: request.method,
      headers: request.headers,
    });
  },
};
