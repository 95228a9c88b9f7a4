import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/bridge/events";
import { fields, initialValues, read } from "../../src/view/question/schema";

const one = (property: JsonObject, required: string[] = []) =>
  fields({ type: "object", properties: { x: property }, required });
const sent = (property: JsonObject, value: string | boolean | string[], required: string[] = []) =>
  read(one(property, required), { x: value });

describe("a form's fields", () => {
  it.each<[JsonObject, string]>([
    [{ type: "string" }, "text"],
    [{ type: "number" }, "number"],
    [{ type: "integer" }, "integer"],
    [{ type: "boolean" }, "boolean"],
    [{ type: "string", enum: ["a"] }, "choice"],
    [{ type: "string", oneOf: [{ const: "a", title: "A" }] }, "choice"],
    [{ type: "array", items: { enum: ["a"] } }, "choices"],
    [{ type: "object" }, "json"],
    [{ type: ["string", "null"] }, "text"],
    [{}, "text"],
  ])("for %j are %s", (property, kind) => expect(one(property)[0]?.kind).toBe(kind));

  it("have the titles of their options", () => {
    expect(one({ oneOf: [{ const: "a", title: "First" }] })[0]?.options).toEqual([{ value: "a", label: "First" }]);
    expect(one({ enum: ["a"], enumNames: ["First"] })[0]?.options).toEqual([{ value: "a", label: "First" }]);
  });
  it("begin with their default", () => {
    const all = fields({
      properties: { a: { type: "integer", default: 3 }, b: { type: "boolean", default: true }, c: { type: "string" } },
    });
    expect(initialValues(all)).toEqual({ a: "3", b: true, c: "" });
  });
  it("are none without a schema", () => expect(fields(null)).toEqual([]));
});

describe("what was filled in", () => {
  it.each<[JsonObject, string | boolean | string[], unknown]>([
    [{ type: "string" }, "a", "a"],
    [{ type: "integer" }, "3", 3],
    [{ type: "number" }, "2.5", 2.5],
    [{ type: "boolean" }, false, false],
    [{ type: "array", items: { enum: ["a", "b"] } }, ["a"], ["a"]],
    [{ type: "object" }, '{"a":1}', { a: 1 }],
  ])("%j with %j is sent as %j", (property, value, result) =>
    expect(sent(property, value)).toEqual({ content: { x: result }, errors: {} }),
  );

  it.each(["constructor", "toString", "__proto__"])("may have the name and the format %s", (name) => {
    const all = fields({ properties: { [name]: { type: "string", format: name } }, required: [name] });
    expect(Object.entries(read(all, Object.fromEntries([[name, "a"]])).content)).toEqual([[name, "a"]]);
    expect(Object.keys(read(all, {}).errors)).toEqual([name]);
  });

  it("may have a default and options that cannot become a text", () => {
    const odd = { toString: 7 };
    const all = fields({
      properties: {
        a: { enum: [odd] },
        b: { default: odd },
        c: { type: "array", default: [odd], items: { enum: ["x"] } },
      },
    });
    expect(all[0]?.options).toEqual([{ value: '{"toString":7}', label: '{"toString":7}' }]);
    expect(initialValues(all)).toEqual({ a: "", b: '{"toString":7}', c: ['{"toString":7}'] });
    expect(
      read(fields({ properties: { a: { type: "array", minItems: odd, items: { enum: ["x"] } } } }), { a: [] }).errors,
    ).toEqual({});
  });

  it("is left out when it is empty and not needed", () =>
    expect(sent({ type: "string" }, "")).toEqual({ content: {}, errors: {} }));

  it.each<[JsonObject, string | string[], RegExp]>([
    [{ type: "string" }, "", /needed/],
    [{ type: "integer" }, "1.5", /whole/],
    [{ type: "number" }, "x", /not a number/],
    [{ type: "number", minimum: 2 }, "1", /least 2/],
    [{ type: "number", maximum: 2 }, "3", /most 2/],
    [{ type: "string", minLength: 3 }, "ab", /least 3/],
    [{ type: "string", maxLength: 1 }, "ab", /most 1/],
    [{ type: "string", format: "email" }, "ab", /e-mail/],
    [{ type: "string", format: "uri" }, "ab", /address/],
    [{ type: "object" }, "{", /JSON/],
    [{ type: "array", items: { enum: ["a"] } }, [], /least 1/],
  ])("%j with %j is refused: %s", (property, value, words) =>
    expect(sent(property, value, ["x"]).errors.x).toMatch(words),
  );
});
