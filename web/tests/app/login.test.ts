// @vitest-environment jsdom
import { beforeEach, describe, expect, it, vi } from "vitest";

type Login = typeof import("../../src/app/login");

/** The page as it is loaded, first or again: what it remembers itself is gone. */
async function loaded(hash = ""): Promise<Login> {
  vi.resetModules();
  window.history.replaceState(null, "", `/${hash}`);
  return import("../../src/app/login");
}

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

describe("a secret that has just come", () => {
  it("is there when the page is loaded again before the gateway has said anything", async () => {
    const first = await loaded("#page=fresh");
    expect(first.takeFromAddress()).toBe(true);
    expect(window.location.hash).toBe("");
    const again = await loaded();
    expect(again.takeFromAddress()).toBe(false);
    expect(again.pageSecret()).toBe("fresh");
    expect(Object.values({ ...localStorage })).toEqual([]);
  });

  it("is kept for the browser once the gateway has accepted it", async () => {
    const page = await loaded("#page=fresh");
    page.takeFromAddress();
    page.secretAccepted();
    expect(Object.values({ ...sessionStorage })).toEqual([]);
    sessionStorage.clear();
    expect((await loaded()).pageSecret()).toBe("fresh");
  });

  it("leaves the one before it alone when it is refused", async () => {
    const before = await loaded("#page=good");
    before.takeFromAddress();
    before.secretAccepted();
    const page = await loaded("#page=made-up");
    page.takeFromAddress();
    expect(page.pageSecret()).toBe("made-up");
    expect(page.secretRefused()).toBe(true);
    expect(page.pageSecret()).toBe("good");
    expect((await loaded()).pageSecret()).toBe("good");
  });
});
