// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { bestTime } from "../time";
import { definitions, NO_DEFINITIONS } from "../../src/view/markdown/definitions";
import { renderBlock, safeAddress } from "../../src/view/markdown/safety";

function dom(markdown: string): HTMLElement {
  const box = document.createElement("div");
  box.innerHTML = renderBlock(markdown, NO_DEFINITIONS);
  return box;
}

const ALLOWED = new Set([
  "A",
  "BLOCKQUOTE",
  "BR",
  "BUTTON",
  "CODE",
  "DEL",
  "DIV",
  "EM",
  "H1",
  "H2",
  "H3",
  "H4",
  "H5",
  "H6",
  "HR",
  "INPUT",
  "LI",
  "OL",
  "P",
  "PRE",
  "SPAN",
  "STRONG",
  "TABLE",
  "TBODY",
  "TD",
  "TH",
  "THEAD",
  "TR",
  "UL",
]);

const PROBES = [
  '<img src=x onerror="alert(1)">',
  "<script>alert(1)</script>",
  '<svg onload="alert(1)"><script>alert(1)</script></svg>',
  "<svg><style><img src=x onerror=alert(1)></style></svg>",
  "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
  '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
  '<a href="javascript:alert(1)">x</a>',
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](java\nscript:alert(1))",
  "[x](&#106;avascript:alert(1))",
  "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
  "[x](vbscript:msgbox(1))",
  "![x](javascript:alert(1))",
  "![x](https://elsewhere.example/pixel.png)",
  '![x](https://elsewhere.example/"onerror="alert(1).png)',
  '[x](https://e.example/"onmouseover="alert(1))',
  '<https://e.example/"onmouseover="alert(1)>',
  "<javascript:alert(1)>",
  '```"><img src=x onerror=alert(1)>\n<img src=x onerror=alert(1)>\n```',
  "- ```<img onerror=alert(1)>\n  <svg onload=alert(1)>\n  ```",
  "| <img src=x onerror=alert(1)> |\n|---|\n| <svg onload=alert(1)> |",
  '<form action="https://e.example"><input name=q><button>go</button></form>',
  '<div style="position:fixed;inset:0">over everything</div>',
  '<a id="bench" name="bench">x</a>',
  '<base href="https://e.example/">',
  '<meta http-equiv="refresh" content="0;url=https://e.example">',
];

describe("what an author wrote", () => {
  it.each(PROBES)("does nothing: %j", (probe) => {
    for (const element of dom(probe).querySelectorAll("*")) {
      expect(ALLOWED).toContain(element.tagName);
      for (const { name, value } of element.attributes) {
        expect(name).not.toMatch(/^on|^style$|^src|^id$|^name$|^action$|^formaction$/);
        if (name === "href") expect(value).toMatch(/^(https?:\/\/|mailto:)/);
      }
    }
  });

  it("is shown as what it is", () => {
    expect(dom('<img src=x onerror="alert(1)">').textContent).toContain('<img src=x onerror="alert(1)">');
    expect(dom("a <b>c</b>").textContent?.trim()).toBe("a <b>c</b>");
  });

  it("keeps the names that a screen reader reads", () => {
    expect(dom("- [x] a").querySelector("input")?.getAttribute("aria-label")).toBe("done");
    expect(dom("- x\n\n  ```js\n  1\n  ```").querySelector("button")?.getAttribute("aria-label")).toBe("Copy code");
    expect(dom("| a |\n|--:|\n| 1 |").querySelector("td")?.getAttribute("align")).toBe("right");
  });

  it("links open elsewhere and cannot reach back", () => {
    const link = dom("[x](https://example.org/a)").querySelector("a");
    expect(link?.target).toBe("_blank");
    expect(link?.rel).toContain("noopener");
  });

  it("links to this machine say so, whatever their author calls them", () => {
    for (const link of [
      '[https://example.org](http://127.0.0.1:8810 "safe")',
      "http://localhost:5173/",
      "<http://[::1]:1/>",
      "![x](http://0x7f.1/x.png)",
    ]) {
      const box = dom(link);
      expect(box.textContent).toContain("this machine");
      expect(box.querySelector("a")?.title).toContain("on this machine");
      expect(box.querySelector("a")?.rel).toBe("noopener noreferrer");
    }
    expect(dom("[x](https://example.org/)").textContent).not.toContain("this machine");
  });

  it("shows pictures from elsewhere as a link", () => {
    const box = dom("![a plan](https://example.org/plan.png)");
    expect(box.querySelector("img")).toBeNull();
    expect(box.querySelector("a")?.href).toBe("https://example.org/plan.png");
    expect(box.textContent).toContain("a plan");
  });
});

it("uses a definition from elsewhere in the message", () => {
  const box = document.createElement("div");
  box.innerHTML = renderBlock("see [this]", definitions(["see [this]\n\n", "[this]: https://example.org/x"]));
  expect(box.querySelector("a")?.href).toBe("https://example.org/x");
});

describe("broken Markdown", () => {
  it.each([
    ["an open emphasis", "**never closed"],
    ["half a link", "[text](https://"],
    ["half a table", "| a | b\n|--"],
    ["a lonely fence", "```"],
    ["deep quotes", "> ".repeat(1_500)],
    ["a hundred thousand signs", "_a".repeat(50_000)],
    ["deep lists", Array.from({ length: 60 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n")],
    ["brackets", "[".repeat(3000)],
    ["stars", "*a".repeat(3000)],
    ["pipes", "|".repeat(3000)],
    ["backticks", "`".repeat(2999)],
    ["a NUL", "a\u0000b"],
    ["a lone surrogate", "\ud800"],
    ["entities", "&#0; &#x110000; &notanentity;"],
  ])(
    "%s is shown, quickly",
    (_, source) => {
      expect(bestTime(() => expect(typeof renderBlock(source, NO_DEFINITIONS)).toBe("string"))).toBeLessThan(3000);
    },
    60_000,
  );
});

it.each([
  ["https://a.example", true],
  ["HTTP://a.example", true],
  ["mailto:a@b.example", true],
  ["javascript:alert(1)", false],
  [" java\tscript:alert(1)", false],
  ["data:text/html,x", false],
  ["/local/path", false],
  ["file:///etc/passwd", false],
  ["//a.example", false],
])("may %s be opened: %s", (address, may) => expect(safeAddress(address) !== null).toBe(may));
