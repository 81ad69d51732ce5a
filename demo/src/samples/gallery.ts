/** The photographs: small ones as plain images below /ec/. Every click reads the chosen one again. */
import { PHOTOS, type Photo } from "../../samples/index.ts";
import { byId, h } from "../page/dom.ts";
import { showCoarse } from "./coarse.ts";

/** Draws the gallery with coarse pictures, and loads it. `read` reads a whole object. */
export function startGallery(read: (key: string) => Promise<Blob>): void {
  const image = h("img", { class: "large", alt: "" });
  const caption = h("figcaption");
  const figure = h("figure", { class: "stage" }, image, caption);
  const buttons = PHOTOS.map((photo) => thumb(photo, () => void show(photo)));
  byId("photos").replaceChildren(figure, h("div", { class: "thumbs" }, ...buttons.map(({ button }) => button)));
  for (const [i, { key }] of PHOTOS.entries()) void showCoarse(buttons[i]!.image, key);
  let shown: string | undefined;
  let turn = 0;

  async function show(photo: Photo): Promise<void> {
    const mine = ++turn;
    for (const { button } of buttons) button.setAttribute("aria-pressed", String(button.id === thumbId(photo)));
    figure.setAttribute("aria-busy", "true");
    caption.replaceChildren(...credit(photo));
    try {
      const blob = await read(photo.key);
      if (mine !== turn) return;
      if (shown !== undefined) URL.revokeObjectURL(shown);
      shown = URL.createObjectURL(blob);
      image.src = shown;
      image.alt = photo.alt;
      image.classList.remove("broken");
    } catch (error) {
      if (mine !== turn) return;
      const { code, message } = error as { code?: string; message: string };
      image.classList.add("broken");
      image.alt = "";
      caption.replaceChildren(h("strong", { class: "failure" }, code ?? "The read failed"), ` ${message}`);
    } finally {
      if (mine === turn) figure.removeAttribute("aria-busy");
    }
  }

  for (const [i, { key }] of PHOTOS.entries()) buttons[i]!.image.src = `/ec/${key}`;
  void show(PHOTOS[0]!);
}

function thumb(photo: Photo, onclick: () => void): { readonly button: HTMLElement; readonly image: HTMLImageElement } {
  const { width, height, title } = photo;
  const image = h("img", { alt: "", width, height, loading: "lazy", decoding: "async" });
  // A broken image fades, and its button keeps its name.
  image.addEventListener("error", () => image.classList.add("broken"));
  image.addEventListener("load", () => image.classList.remove("broken"));
  const button = h(
    "button",
    { type: "button", id: thumbId(photo), "aria-label": `Read ${title}`, title: photo.alt, onclick },
    image,
    h("span", {}, title),
  );
  return { button, image };
}

function thumbId({ key }: Photo): string {
  return `thumb-${key}`;
}

function credit({ title, author, licence }: Photo): (Node | string)[] {
  return [h("strong", {}, title), ` ${author}, ${licence}`];
}
