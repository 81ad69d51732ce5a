/**
 * Reads what the events of a read are from their types. It is here because the docs have a TypeScript with an API of
 * their own, for TypeDoc.
 */
import { fileURLToPath } from "node:url";
import ts from "typescript";

/** A field of an event. */
export interface EventField {
  readonly name: string;
  /** As written in the source. */
  readonly type: string;
  readonly meaning: string;
}

/** A member of the union `ReadEvent`. */
export interface EventType {
  /** Its field `type`. */
  readonly type: string;
  readonly meaning: string;
  /** The others, without the id of the read. */
  readonly fields: readonly EventField[];
}

/** Returns the members of the union `ReadEvent`. Throws when a field has no doc comment. */
export function readEvents(): EventType[] {
  const path = fileURLToPath(new URL("../../packages/sw/src/events/read-events.ts", import.meta.url));
  const program = ts.createProgram([path], {
    strict: true,
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.NodeNext,
    allowImportingTsExtensions: true,
    noEmit: true,
  });
  const checker = program.getTypeChecker();
  const docOf = (symbol: ts.Symbol): string =>
    ts.displayPartsToString(symbol.getDocumentationComment(checker)).replaceAll("\n", " ");
  const file = checker.getSymbolAtLocation(program.getSourceFile(path)!)!;
  const union = checker.getExportsOfModule(file).find(({ name }) => name === "ReadEvent")!;
  return (checker.getDeclaredTypeOfSymbol(union) as ts.UnionType).types.map((event) => {
    const type = checker.getTypeOfSymbol(event.getProperty("type")!) as ts.StringLiteralType;
    const fields = event.getProperties().filter(({ name }) => name !== "type" && name !== "read");
    return {
      type: type.value,
      meaning: docOf(event.symbol),
      fields: fields.map((field) => {
        const meaning = docOf(field);
        if (!meaning) throw new Error(`${field.name} of ${event.symbol.name} has no doc comment`);
        const declaration = field.declarations![0] as ts.PropertySignature;
        return { name: field.name, type: declaration.type!.getText(), meaning };
      }),
    };
  });
}
