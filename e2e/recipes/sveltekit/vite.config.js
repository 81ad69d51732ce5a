import { agarose } from "@agarose/sw/vite";
import adapter from "@sveltejs/adapter-static";
import { sveltekit } from "@sveltejs/kit/vite";

/** Objects are no files of the app: the build must not look for them. */
function handleHttpError({ path, message }) {
  if (!path.startsWith("/ec/")) throw new Error(message);
}

export default {
  plugins: [agarose(), sveltekit({ adapter: adapter(), prerender: { handleHttpError } })],
};
