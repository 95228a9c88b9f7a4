import { expect, test } from "vitest";
import { asLocal, auditAddress, changed, filterOf, fromLocal, queryOf } from "../../../src/app/audit/filter";

test("filters stand in the address and come back out of it", () => {
  const filter = { session: "dgm_1", by: 'a rule & "more"', unmediated: "true" };
  expect(filterOf(auditAddress(filter))).toEqual(filter);
  expect(auditAddress({})).toBe("#/audit");
  expect(filterOf("#/audit?nonsense=1&tool=&agent=a")).toEqual({ agent: "a" });
});

test("an empty value removes a filter", () => {
  expect(changed({ agent: "a", tool: "t" }, { tool: "" })).toEqual({ agent: "a" });
  expect(queryOf({ agent: "a" }, { limit: "5", cursor: "" })).toBe("agent=a&limit=5");
});

test("times go through a field of the browser and back", () => {
  const stamp = "2026-11-18T03:31:00.000Z";
  expect(fromLocal(asLocal(stamp))).toBe(stamp);
  expect(asLocal("soon")).toBe("");
  expect(fromLocal("")).toBe("");
});
