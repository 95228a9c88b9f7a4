/** The frame's icons: 16 px, one stroke, drawn here so that nothing is fetched. They are decoration; labels are text. */

const PATHS = {
  plus: "M8 3v10M3 8h10",
  search: "M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9ZM10.300 10.300 13.500 13.500",
  menu: "M2.500 4.500h11M2.500 8h11M2.500 11.500h11",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  close: "m4 4 8 8M12 4l-8 8",
  send: "M8 13V3.500M4 7l4-4 4 4",
  stop: "M5 5h6v6H5z",
  attach:
    "M12.500 7.300 8 11.800a3 3 0 0 1-4.300-4.200l5-5a2 2 0 0 1 2.900 2.800l-5 5a1 1 0 0 1-1.400-1.400l4.200-4.200",
  check: "m3.500 8.500 3 3 6-7",
  chevron: "m4.500 6.500 3.500 3.500 3.500-3.500",
  folder: "M2 5a1 1 0 0 1 1-1h3l1.500 1.500H13a1 1 0 0 1 1 1V12a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1Z",
  file: "M4 2.500h5L12 5.500v8H4zM9 2.500v3h3",
  edit: "M3 13h2l7.500-7.500-2-2L3 11zM9 5l2 2",
  trash: "M3 4.500h10M6 4.500V3h4v1.500M4.500 4.500l.5 9h6l.5-9",
  download: "M8 2.500v8M4.500 7.500 8 11l3.500-3.500M3 13.500h10",
  shield: "M8 2.300l4.700 1.800v3.600c0 3-2 5-4.700 6-2.700-1-4.700-3-4.700-6V4.100z",
  moon: "M13 9.500A5.500 5.500 0 1 1 6.500 3a4.500 4.500 0 0 0 6.500 6.500Z",
  sun: "M8 10.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M12.600 3.400l-1 1M4.400 11.600l-1 1",
  system: "M2.500 3.500h11v7h-11zM6 13.500h4M8 10.500v3",
  bell: "M4 11V7a4 4 0 1 1 8 0v4l1 1H3zM6.500 13.500a1.500 1.500 0 0 0 3 0",
  bellOff: "M4 11V7a4 4 0 0 1 6.500-3M12 7.500V11l1 1H5M6.500 13.500a1.500 1.500 0 0 0 3 0M2.500 2.500l11 11",
  power: "M8 2.500V8M4.500 4.500a5 5 0 1 0 7 0",
  leave: "M6.500 2.500H3v11h3.500M6.500 8H13.500M10.500 5l3 3-3 3",
  keyboard: "M2 4.500h12v7H2zM4.500 7h.01M7 7h.01M9.500 7h.01M11.500 7h.01M5 9.300h6",
  copy: "M6 6h7v7H6zM10 6V3H3v7h3",
  retry: "M13 3v3.500H9.500M12.700 6.500A5 5 0 1 0 13 9",
  clock: "M8 13.500a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11ZM8 5v3l2 1.500",
  box: "M8 2 13.500 5v6L8 14l-5.500-3V5zM2.500 5 8 8l5.500-3M8 8v6",
  users:
    "M6 8a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM1.500 13a4.500 4.500 0 0 1 9 0M10.500 3.300a2.500 2.500 0 0 1 0 4.400M12 9.300a4.500 4.500 0 0 1 2.500 3.700",
  group: "M2.500 3.500h11M2.500 8h7M2.500 12.500h4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === "more" ? 2 : 1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
