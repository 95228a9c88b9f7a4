import { expect, test } from "vitest";
import { leadsToThisMachine } from "../../src/view/thisMachine";

const HERE = [
  "http://127.0.0.1:8810/",
  "http://127.0.0.1",
  "https://127.9.8.7/x?y#z",
  "http://127.1:3000/",
  "http://2130706433/",
  "http://0x7f000001/",
  "http://0x7f.1/",
  "http://0177.0.0.1/",
  "http://017700000001:80/",
  "http://0.0.0.0:8000/",
  "http://0/",
  "http://localhost:5173",
  "http://LOCALHOST/",
  "http://localhost./",
  "http://preview.localhost:1/",
  "http://a.b.LocalHost./",
  "http://user:word@127.0.0.1:8810/",
  "http://good.example@127.0.0.1/",
  "http://[::1]:8810/",
  "http://[0:0:0:0:0:0:0:1]/",
  "http://[::]/",
  "http://[::ffff:127.0.0.1]/",
  "http://[::ffff:7f00:1]:3000/",
  "http://[0:0:0:0:0:ffff:7f12:3456]/",
  "http://[::127.0.0.1]/",
  "http://[::ffff:0.0.0.0]/",
  "http://[64:ff9b::7f00:1]/",
  "http://[::FFFF:127.0.0.1]/",
  "http://１２７.0.0.1/",
  "http://ⓛocalhost/",
  "http://127。0。0。1:8810/",
  "http://box.example:8810/",
  "https://BOX.example./",
  "http://box.example/",
];

const ELSEWHERE = [
  "https://example.org/",
  "https://127.0.0.1.example.org/",
  "https://localhost.example.org/",
  "https://notlocalhost/",
  "http://128.0.0.1/",
  "http://12.7.0.0/",
  "http://192.168.1.7:8810/",
  "http://[2001:db8::1]/",
  "http://[::2]/",
  "http://[::ffff:10.0.0.1]/",
  "http://[fe80::1]/",
  "https://example.org/?at=http://127.0.0.1:8810",
  "https://example.org/#localhost",
  "https://example.org\\@other.example/",
  "mailto:me@localhost",
  "http://sub.box.example/",
  "not an address",
  "",
];

test.each(HERE)("%s leads to this machine", (address) => expect(leadsToThisMachine(address, "box.example")).toBe(true));
test.each(ELSEWHERE)("%s leads elsewhere", (address) => expect(leadsToThisMachine(address, "box.example")).toBe(false));

test("the page's own host counts when it is an address", () => {
  expect(leadsToThisMachine("http://192.168.1.7:8810/", "192.168.1.7")).toBe(true);
  expect(leadsToThisMachine("http://[2001:db8:0:0::7]:8810/", "[2001:db8::7]")).toBe(true);
});
