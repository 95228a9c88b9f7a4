/** A form from the flat JSON schema of an elicitation, and what its fields' contents must be. */

import type { JsonObject, JsonValue } from "../../bridge/events";
import { own, textOf } from "../../model/untrusted";

export interface Option {
  readonly value: string;
  readonly label: string;
}

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly kind: "text" | "number" | "integer" | "boolean" | "choice" | "choices" | "json";
  /** For text: email, uri, date, date-time. */
  readonly format: string;
  readonly required: boolean;
  readonly options: readonly Option[];
  readonly initial: JsonValue | undefined;
  readonly schema: JsonObject;
}

export type Values = Readonly<Record<string, string | boolean | readonly string[]>>;

const object = (value: JsonValue | undefined): JsonObject =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
const string = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "");
const list = (value: JsonValue | undefined): JsonValue[] => (Array.isArray(value) ? value : []);

export function fields(schema: JsonObject | null): Field[] {
  const required = list(schema?.required);
  return Object.entries(object(schema?.properties)).map(([name, raw]) => {
    const property = object(raw);
    const options = optionsOf(property);
    return {
      name,
      label: string(property.title) || name,
      description: string(property.description),
      kind: kindOf(property, options),
      format: string(property.format),
      required: required.includes(name),
      options: options.length > 0 ? options : optionsOf(object(property.items)),
      initial: property.default,
      schema: property,
    };
  });
}

function kindOf(property: JsonObject, options: readonly Option[]): Field["kind"] {
  if (options.length > 0) return "choice";
  const type = Array.isArray(property.type) ? property.type.find((each) => each !== "null") : property.type;
  if (type === "array" && optionsOf(object(property.items)).length > 0) return "choices";
  const kinds: Record<string, Field["kind"]> = {
    string: "text",
    number: "number",
    integer: "integer",
    boolean: "boolean",
  };
  return own(kinds, string(type)) ?? (type === undefined ? "text" : "json");
}

function optionsOf(property: JsonObject): Option[] {
  const titled = list(property.oneOf).length > 0 ? list(property.oneOf) : list(property.anyOf);
  const options = titled.map(object).filter((each) => typeof each.const === "string");
  if (options.length > 0)
    return options.map((each) => ({ value: string(each.const), label: string(each.title) || string(each.const) }));
  const names = list(property.enumNames);
  return list(property.enum).map((value, index) => ({
    value: textOf(value),
    label: string(names[index]) || textOf(value),
  }));
}

export function initialValues(all: readonly Field[]): Values {
  return Object.fromEntries(all.map((field) => [field.name, initialOf(field)]));
}

function initialOf({ kind, initial }: Field): string | boolean | readonly string[] {
  if (kind === "boolean") return initial === true;
  if (kind === "choices") return list(initial).map((value) => textOf(value));
  if (kind === "json") return initial === undefined ? "" : JSON.stringify(initial);
  return initial === undefined || initial === null ? "" : textOf(initial);
}

/** The answer, or what is wrong with which field. */
export function read(all: readonly Field[], values: Values): { content: JsonObject; errors: Record<string, string> } {
  const content: [string, JsonValue][] = [];
  const errors: [string, string][] = [];
  for (const field of all) {
    const [result, error] = readOne(field, own(values, field.name) ?? "");
    if (error !== null) errors.push([field.name, error]);
    else if (result !== undefined) content.push([field.name, result]);
  }
  return { content: Object.fromEntries(content), errors: Object.fromEntries(errors) };
}

type Result = [JsonValue | undefined, string | null];

function readOne(field: Field, value: string | boolean | readonly string[]): Result {
  if (typeof value === "boolean") return [value, null];
  if (typeof value !== "string") return readChoices(field, value);
  if (value === "") return field.required ? [undefined, "This is needed."] : [undefined, null];
  if (field.kind === "number" || field.kind === "integer") return readNumber(field, value);
  if (field.kind === "json") {
    try {
      return [JSON.parse(value) as JsonValue, null];
    } catch {
      return [undefined, "This is not JSON."];
    }
  }
  return readText(field, value);
}

function readChoices(field: Field, value: readonly string[]): Result {
  const { minItems, maxItems } = field.schema;
  const least = typeof minItems === "number" ? minItems : field.required ? 1 : 0;
  if (value.length < least) return [undefined, `Choose at least ${least}.`];
  const most = typeof maxItems === "number" ? maxItems : Infinity;
  return value.length > most ? [undefined, `Choose at most ${most}.`] : [[...value], null];
}

function readNumber({ kind, schema }: Field, value: string): Result {
  const number = Number(value);
  if (!Number.isFinite(number)) return [undefined, "This is not a number."];
  if (kind === "integer" && !Number.isInteger(number)) return [undefined, "This must be a whole number."];
  if (typeof schema.minimum === "number" && number < schema.minimum) return [undefined, `At least ${schema.minimum}.`];
  if (typeof schema.maximum === "number" && number > schema.maximum) return [undefined, `At most ${schema.maximum}.`];
  return [number, null];
}

const FORMATS: Record<string, [RegExp, string]> = {
  email: [/^[^\s@]+@[^\s@]+$/, "This is not an e-mail address."],
  uri: [/^[a-z][a-z0-9+.-]*:\S+$/i, "This is not an address (with https:// or the like)."],
  date: [/^\d{4}-\d{2}-\d{2}$/, "This is not a date (2026-12-31)."],
};

function readText({ schema, format }: Field, value: string): Result {
  if (typeof schema.minLength === "number" && value.length < schema.minLength)
    return [undefined, `At least ${schema.minLength} characters.`];
  if (typeof schema.maxLength === "number" && value.length > schema.maxLength)
    return [undefined, `At most ${schema.maxLength} characters.`];
  const known = own(FORMATS, format);
  if (known !== undefined && !known[0].test(value)) return [undefined, known[1]];
  return [value, null];
}
