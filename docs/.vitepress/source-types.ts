/**
 * Reads what a reference page says from the types and doc comments of `@agarose/sw`. It is here because the docs have a
 * TypeScript with an API of their own, for TypeDoc.
 */
import { fileURLToPath } from "node:url";
import ts from "typescript";

/** A field of an interface. */
export interface Field {
  readonly name: string;
  /** As written in the source. */
  readonly type: string;
  readonly meaning: string;
  /** Its tag `@defaultValue`. */
  readonly default: string | undefined;
}

/** A member of a union of objects. Each has its own literal in one field. */
export interface Variant {
  readonly tag: string;
  readonly meaning: string;
  readonly fields: readonly Field[];
}

/** An exported function. */
export interface ExportedFunction {
  /** As a caller writes it: `register(url?, options?)`. */
  readonly call: string;
  /** The first paragraph of its doc comment. */
  readonly meaning: string;
}

/** The exports of one module. Every method throws where something has no doc comment. */
export class SourceTypes {
  readonly #checker: ts.TypeChecker;
  readonly #exports: readonly ts.Symbol[];

  /** @param path of the module, below the root of the repository. */
  constructor(path: string) {
    const file = fileURLToPath(new URL(`../../${path}`, import.meta.url));
    const program = ts.createProgram([file], {
      strict: true,
      target: ts.ScriptTarget.ESNext,
      module: ts.ModuleKind.NodeNext,
      allowImportingTsExtensions: true,
      noEmit: true,
    });
    this.#checker = program.getTypeChecker();
    const module = this.#checker.getSymbolAtLocation(program.getSourceFile(file)!)!;
    this.#exports = this.#checker
      .getExportsOfModule(module)
      .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol));
  }

  /** Returns the fields of the interface `name`, also those that it inherits. */
  fieldsOf(name: string): Field[] {
    return this.#checker
      .getDeclaredTypeOfSymbol(this.#exported(name))
      .getProperties()
      .map((field) => this.#field(field, name));
  }

  /** Returns the members of the union `name`, whose literals are in the field `tag`, without the fields `common`. */
  variantsOf(name: string, tag: string, common: readonly string[]): Variant[] {
    const union = this.#checker.getDeclaredTypeOfSymbol(this.#exported(name)) as ts.UnionType;
    return union.types.map((member) => {
      const literal = this.#checker.getTypeOfSymbol(member.getProperty(tag)!) as ts.StringLiteralType;
      const fields = member.getProperties().filter((field) => field.name !== tag && !common.includes(field.name));
      return {
        tag: literal.value,
        meaning: onOneLine(this.#docOf(member.symbol, literal.value)),
        fields: fields.map((field) => this.#field(field, literal.value)),
      };
    });
  }

  /** Returns the functions of the module, in the order of its exports. */
  functions(): ExportedFunction[] {
    return this.#exports.flatMap((symbol) => {
      const declaration = symbol.valueDeclaration;
      return declaration && ts.isFunctionDeclaration(declaration) ? [this.#function(symbol, declaration)] : [];
    });
  }

  /** Returns the public methods of the class `name`, and its fields that are functions. */
  methodsOf(name: string): ExportedFunction[] {
    const members = this.#checker.getDeclaredTypeOfSymbol(this.#exported(name)).getProperties();
    return members.flatMap((symbol) => {
      const declaration = symbol.valueDeclaration;
      const field = declaration && ts.isPropertyDeclaration(declaration) ? declaration.initializer : undefined;
      const called = field && ts.isArrowFunction(field) ? field : declaration;
      const isMethod = called && (ts.isArrowFunction(called) || ts.isMethodDeclaration(called));
      return isMethod && !symbol.name.includes("#") ? [this.#function(symbol, called)] : [];
    });
  }

  #function(symbol: ts.Symbol, declaration: ts.SignatureDeclaration): ExportedFunction {
    const parameters = declaration.parameters.map((parameter) => {
      const isOptional = parameter.questionToken ?? parameter.initializer;
      return `${parameter.name.getText()}${isOptional ? "?" : ""}`;
    });
    const [meaning = ""] = this.#docOf(symbol, symbol.name).split("\n\n");
    return { call: `${symbol.name}(${parameters.join(", ")})`, meaning: onOneLine(meaning) };
  }

  #exported(name: string): ts.Symbol {
    const found = this.#exports.find((symbol) => symbol.name === name);
    if (!found) throw new Error(`the module does not export ${name}`);
    return found;
  }

  #field(symbol: ts.Symbol, of: string): Field {
    const declaration = symbol.declarations![0] as ts.PropertySignature;
    const tag = symbol.getJsDocTags(this.#checker).find(({ name }) => name === "defaultValue");
    return {
      name: symbol.name,
      type: declaration.type!.getText(),
      meaning: onOneLine(this.#docOf(symbol, `${symbol.name} of ${of}`)),
      default: tag && onOneLine(ts.displayPartsToString(tag.text)),
    };
  }

  #docOf(symbol: ts.Symbol, name: string): string {
    const text = ts.displayPartsToString(symbol.getDocumentationComment(this.#checker));
    if (!text) throw new Error(`${name} has no doc comment`);
    return text;
  }
}

function onOneLine(text: string): string {
  return text.replaceAll("\n", " ").trim();
}
