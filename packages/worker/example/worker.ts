import { createPop } from "@agarose/worker/pop";
import config from "./agarose.json";

const pop = createPop(config);

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/o/")) return pop.fetch(request, context);
    return new Response("Your own app");
  },
} satisfies ExportedHandler;
