export { Boundary } from "./Boundary";
export { Markdown } from "./markdown/Markdown";
export { ElicitationCard } from "./question/ElicitationCard";
export { PermissionCard } from "./question/PermissionCard";
export { Timeline, type TimelineProps } from "./timeline/Timeline";
export { ToolCard } from "./tool/ToolCard";
