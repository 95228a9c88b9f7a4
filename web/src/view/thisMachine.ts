/**
 * Whether an address leads to this machine, where an agent may have started what answers there. Browsers send cookies to
 * every port of a host, and pages on one port look like pages on another, so such a link says where it leads.
 */

export const THIS_MACHINE = "this machine";
export const THIS_MACHINE_HINT = "This address is on this machine: a program that the agent started may answer there.";

export function leadsToThisMachine(address: string, ownHost = window.location.hostname): boolean {
  if (!URL.canParse(address)) return false;
  // The URL parser has made 2130706433, 0x7f.1 and 127.1 into 127.0.0.1, and names into lower case ASCII.
  const host = plainHost(new URL(address).hostname);
  return host !== "" && (host === plainHost(ownHost) || isLocalName(host) || isLocalIPv4(host) || isLocalIPv6(host));
}

function plainHost(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}

function isLocalName(host: string): boolean {
  return (
    host === "localhost" || host.endsWith(".localhost") || host === "localhost.localdomain" || host === "ip6-localhost"
  );
}

/** 0.0.0.0 is no address to go to, and systems go to this machine with it. */
function isLocalIPv4(host: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(host) || host === "0.0.0.0";
}

/** Also an IPv4 address inside one: mapped (::ffff:127.0.0.1), compatible (::127.0.0.1), translated (64:ff9b::127.0.0.1). */
function isLocalIPv6(host: string): boolean {
  const inside = /^\[(.+)\]$/.exec(host)?.[1];
  if (inside === undefined) return false;
  if (inside === "::1" || inside === "::") return true;
  const carried = /^(?:::|::ffff:|::ffff:0:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(inside);
  if (carried === null) return false;
  const [high, low] = [parseInt(carried[1] ?? "", 16), parseInt(carried[2] ?? "", 16)];
  return high >> 8 === 127 || (high === 0 && low === 0);
}
