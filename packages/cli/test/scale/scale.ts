/**
 * The cost of commands that walk over all objects: time, requests and the most memory of the process.
 *
 *     node packages/cli/test/scale/scale.ts [objects] [command…]
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startListedBuckets } from "./listed-buckets.ts";
import { AGAROSE, measure } from "./measure.ts";

const REGIONS = ["frankfurt", "dublin", "virginia", "paulo", "tokyo", "sydney"];
const CODE = { k: 4, m: 2 };
const VERBS = [["ls"], ["verify", "--quick"], ["repair", "--quick"], ["scrub"], ["gc"], ["du"]];

const [count = "1000000", ...chosen] = process.argv.slice(2);
const objects = Number(count);
const buckets = REGIONS.map((region) => ({ name: `bucket-${region}`, region }));
const server = await startListedBuckets(buckets, objects, CODE);
const folder = await mkdtemp(join(tmpdir(), "agarose-scale-"));
try {
  const config = join(folder, "agarose.config.json");
  await writeFile(
    config,
    JSON.stringify({
      regions: buckets.map(({ region, name }) => ({
        name: region,
        provider: region,
        endpoint: server.url,
        bucket: name,
      })),
      code: CODE,
      stripeBytes: 1_000_000,
      survive: { regions: 2, providers: 2 },
      unsigned: true,
    }),
  );
  for (const verb of VERBS) {
    if (chosen.length === 0 || chosen.includes(verb[0]!)) console.log(await report(verb, config));
  }
} finally {
  await server.close();
  await rm(folder, { recursive: true, force: true });
}

async function report(verb: readonly string[], config: string): Promise<string> {
  const env = { ...process.env, AWS_ACCESS_KEY_ID: "scale", AWS_SECRET_ACCESS_KEY: "scale-secret" };
  const args = [AGAROSE, ...verb, "--config", config];
  const { code, seconds, peakMiB, lines, last, problems } = await measure(process.execPath, args, env);
  const { listings, manifests, refused } = server.takeCounts();
  return [
    `agarose ${verb.join(" ")}: exit ${code}, ${lines} lines, the last: ${last}${code === 0 ? "" : problems}`,
    `  ${seconds.toFixed(0)} s, ${Math.round(objects / seconds)} objects/s, ${listings} listings, ` +
      `${manifests} manifests read, ${refused} refused, at most ${peakMiB} MiB resident`,
  ].join("\n");
}
