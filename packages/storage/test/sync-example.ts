import { openDeployment } from "@agarose/storage";

/** Publishes a folder as the objects below `app/`, and returns whether nothing failed. */
export async function publish(config: string | object, folder: string): Promise<boolean> {
  const store = await openDeployment(config);
  let failures = 0;
  for await (const outcome of store.sync({ folder }, { prefix: "app/" }, { delete: true, exclude: ["*.map"] })) {
    console.log(outcome.outcome, outcome.key);
    if (outcome.outcome === "failed") failures++;
  }
  store.close();
  return failures === 0;
}
