import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";

const { scene } = await new GLTFLoader().loadAsync("/ec/scenes/globe.glb");
export { scene };
