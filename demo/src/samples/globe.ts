/** A globe in binary glTF, loaded by the real `GLTFLoader` of three. Drag it, or use the arrow keys. */
import type { Object3D, PerspectiveCamera, Scene, WebGLRenderer } from "three";
import { GLOBE } from "../../samples/index.ts";
import { byId, h } from "../page/dom.ts";
import { bytes, count } from "../page/format.ts";
import { startTrial, type TrialPorts } from "./trial.ts";

/** Radians that an arrow key, or a pixel of dragging, turns. */
const [KEY_TURN, PIXEL_TURN] = [0.2, 0.006];
const TILT_MAX = 1.3;
/** Such a globe fills the picture. */
const DISTANCE = 2.7;

export function startGlobe(ports: TrialPorts): void {
  const canvas = h("canvas", {
    class: "large",
    tabindex: 0,
    role: "img",
    "aria-label": "Globe. Arrow keys turn it.",
  });
  let view: Promise<View> | undefined;
  const { element } = startTrial({
    ...ports,
    title: "Load the globe",
    key: GLOBE.key,
    isOwn: (key) => key === GLOBE.key,
    async work(halfway) {
      const { GLTFLoader } = await import("three/addons/loaders/GLTFLoader.js");
      await halfway();
      let loaded = 0;
      const url = `/ec/${GLOBE.key}`;
      const { scene } = await new GLTFLoader().loadAsync(url, (progress) => (loaded = progress.loaded));
      view ??= View.open(canvas);
      const triangles = (await view).show(scene);
      return { bytes: loaded, what: `${count(triangles, "triangle")}, ${bytes(loaded)},` };
    },
  });
  const turn = (right: number, down: number): void => void view?.then((open) => open.turn(right, down));
  const turns: Readonly<Record<string, readonly [number, number]>> = {
    ArrowLeft: [-KEY_TURN, 0],
    ArrowRight: [KEY_TURN, 0],
    ArrowUp: [0, -KEY_TURN],
    ArrowDown: [0, KEY_TURN],
  };
  canvas.addEventListener("keydown", (event) => {
    const by = turns[event.key];
    if (!by) return;
    event.preventDefault();
    turn(...by);
  });
  canvas.addEventListener("pointermove", ({ buttons, movementX, movementY }) => {
    if (buttons !== 0) turn(PIXEL_TURN * movementX, PIXEL_TURN * movementY);
  });
  byId("globe").replaceChildren(
    element,
    h("figure", { class: "stage" }, canvas, h("figcaption", {}, h("strong", {}, GLOBE.title), ` ${GLOBE.licence}`)),
  );
}

/** The scene of the canvas, which draws when something changes. */
class View {
  readonly #renderer: WebGLRenderer;
  readonly #scene: Scene;
  readonly #camera: PerspectiveCamera;
  #globe: Object3D | undefined;

  private constructor(renderer: WebGLRenderer, scene: Scene, camera: PerspectiveCamera) {
    this.#renderer = renderer;
    this.#scene = scene;
    this.#camera = camera;
    new ResizeObserver(() => this.#draw()).observe(renderer.domElement);
  }

  /** Rejects where the browser has no WebGL 2. */
  static async open(canvas: HTMLCanvasElement): Promise<View> {
    const three = await import("three");
    const renderer = new three.WebGLRenderer({ canvas, antialias: true, alpha: true });
    const scene = new three.Scene();
    const camera = new three.PerspectiveCamera(45);
    camera.position.z = DISTANCE;
    const sun = new three.DirectionalLight("white", 2.5);
    sun.position.set(2, 1, 3);
    scene.add(sun, new three.AmbientLight("white", 1));
    return new View(renderer, scene, camera);
  }

  /** Returns the number of triangles that it draws. */
  show(globe: Object3D): number {
    if (this.#globe) this.#scene.remove(this.#globe);
    globe.rotation.copy(this.#globe?.rotation ?? globe.rotation);
    this.#globe = globe;
    this.#scene.add(globe);
    this.#draw();
    return this.#renderer.info.render.triangles;
  }

  turn(right: number, down: number): void {
    if (!this.#globe) return;
    const { rotation } = this.#globe;
    rotation.y += right;
    rotation.x = Math.max(-TILT_MAX, Math.min(TILT_MAX, rotation.x + down));
    this.#draw();
  }

  #draw(): void {
    const { clientWidth, clientHeight } = this.#renderer.domElement;
    if (clientWidth === 0) return;
    this.#renderer.setPixelRatio(devicePixelRatio);
    this.#renderer.setSize(clientWidth, clientHeight, false);
    this.#camera.aspect = clientWidth / clientHeight;
    this.#camera.updateProjectionMatrix();
    this.#renderer.render(this.#scene, this.#camera);
  }
}
