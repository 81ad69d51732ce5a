/**
 * Writes a web app that reads through Agarose. The command is `npm create agarose`.
 *
 * @module
 */
export { checkAnswers, defaultAnswers, type Answers } from "./answers.ts";
export { projectFiles, type ProjectOptions } from "./project-files.ts";
export { writeProject } from "./write-project.ts";
