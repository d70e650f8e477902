// The part of the scenario's JSON Schema that controls need.

import type { Algorithm, Json, Table } from "./api";

/** The type of a value, with references resolved. */
export interface Shape {
  kind: "quantity" | "text" | "number" | "flag" | "choice" | "named" | "table" | "list" | "any";
  /** Name of the definition from which it came, such as `Rate`. */
  definition: string;
  optional: boolean;
  description: string;
  default: Json | undefined;
  choices: string[];
  /** For `named`: the tables by name. `bare` if a name alone is sufficient. */
  variants: { name: string; title: string; group?: string | undefined; fields: [string, Shape][] }[];
  bare: boolean;
  fields: [string, Shape][];
  item: Shape | null;
}

type Schema = Record<string, unknown>;

/** Reads types from a schema. */
export class Shapes {
  /** Algorithms have groups; another name for one of them has none. */
  constructor(
    private readonly root: Table,
    private readonly algorithms: Algorithm[],
  ) {}

  get scenario(): Shape {
    return this.shape(this.root as Schema);
  }

  private shape(given: Schema, depth = 0): Shape {
    let schema = given;
    let definition = "";
    let optional = false;
    for (;;) {
      const any = schema["anyOf"] as Schema[] | undefined;
      if (typeof schema["$ref"] === "string") {
        definition = schema["$ref"].split("/").at(-1)!;
        const target = ((this.root["$defs"] as Record<string, Schema>)[definition] ?? {}) as Schema;
        schema = { ...target, ...without(schema, "$ref") };
      } else if (any?.some((one) => one["type"] === "null")) {
        optional = true;
        const rest = any.filter((one) => one["type"] !== "null");
        schema = { ...without(schema, "anyOf"), ...(rest.length === 1 ? rest[0]! : { anyOf: rest }) };
      } else {
        break;
      }
    }
    const shape: Shape = {
      kind: "any",
      definition,
      optional,
      description: String(given["description"] ?? schema["description"] ?? "").replaceAll("\n", " "),
      default: (given["default"] ?? schema["default"]) as Json | undefined,
      choices: [],
      variants: [],
      bare: false,
      fields: [],
      item: null,
    };
    const types = Array.isArray(schema["type"]) ? (schema["type"] as string[]) : [schema["type"] as string];
    if (types.includes("null")) shape.optional = true;
    const variants = this.named(schema, depth);
    if (definition === "Algorithm") for (const variant of variants ?? []) variant.group = this.algorithms.find(({ name }) => name === variant.name)?.group;
    if (variants) {
      shape.kind = "named";
      shape.variants = variants;
      shape.bare = JSON.stringify(schema["anyOf"] ?? "").includes('"enum"') || definition === "Queue";
    } else if (Array.isArray(schema["enum"])) {
      shape.kind = "choice";
      shape.choices = schema["enum"] as string[];
    } else if (Array.isArray(schema["oneOf"]) && (schema["oneOf"] as Schema[]).every((one) => typeof one["const"] === "string")) {
      shape.kind = "choice";
      shape.choices = (schema["oneOf"] as Schema[]).map((one) => one["const"] as string);
    } else if (types.includes("string")) {
      shape.kind = schema["pattern"] ? "quantity" : "text";
    } else if (types.includes("integer") || types.includes("number")) {
      shape.kind = "number";
    } else if (types.includes("boolean")) {
      shape.kind = "flag";
    } else if (types.includes("array") && schema["items"]) {
      shape.kind = "list";
      shape.item = depth < 6 ? this.shape(schema["items"] as Schema, depth + 1) : null;
    } else if (types.includes("object") && schema["properties"]) {
      shape.kind = "table";
      shape.fields = this.fields(schema, depth);
    } else if (definition === "Start") {
      // A time, or a table that says how it is drawn at random: the time has a control, and the table is edited as JSON.
      shape.kind = "quantity";
    }
    return shape;
  }

  private fields(schema: Schema, depth: number): [string, Shape][] {
    if (depth >= 6) return [];
    const required = new Set((schema["required"] as string[] | undefined) ?? []);
    return Object.entries(schema["properties"] as Record<string, Schema>).map(([name, inner]) => {
      const shape = this.shape(inner, depth + 1);
      shape.optional ||= !required.has(name);
      return [name, shape];
    });
  }

  /** Tables that are distinguished by their constant `name`; null if the type has no such tables. */
  private named(schema: Schema, depth: number): Shape["variants"] | null {
    const options = ((schema["oneOf"] ?? schema["anyOf"] ?? []) as Schema[]).flatMap((one) => (one["oneOf"] as Schema[] | undefined) ?? [one]);
    const tables = options.filter((one) => typeof (one["properties"] as Record<string, Schema> | undefined)?.["name"]?.["const"] === "string");
    if (tables.length === 0) return null;
    return tables.map((one) => ({
      name: (one["properties"] as Record<string, Schema>)["name"]!["const"] as string,
      title: String(one["title"] ?? one["description"] ?? ""),
      fields: this.fields(one, depth).filter(([name]) => name !== "name"),
    }));
  }
}

function without(schema: Schema, key: string): Schema {
  const { [key]: _, ...rest } = schema;
  return rest;
}
