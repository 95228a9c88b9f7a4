import { memo } from "react";
import type { Item, Terminal } from "../../model/conversation";
import { AgentMessage } from "../message/AgentMessage";
import { Marker, Notice, TurnEnd, Unknown } from "../message/Notice";
import { Thought } from "../message/Thought";
import { UserMessage } from "../message/UserMessage";
import { ElicitationAnswer } from "../question/ElicitationCard";
import { PermissionAnswer } from "../question/PermissionAnswer";
import { ToolCard } from "../tool/ToolCard";

interface Props {
  item: Item;
  terminals: ReadonlyMap<string, Terminal>;
  cwd: string | undefined;
}

/** An item as its kind is drawn. Open questions are a line here: the whole of them stands above the composer. */
export const ItemView = memo(function ItemView({ item, terminals, cwd }: Props) {
  switch (item.kind) {
    case "user":
      return <UserMessage item={item} />;
    case "agent":
      return item.echo ? null : <AgentMessage item={item} />;
    case "thought":
      return <Thought item={item} />;
    case "tool":
      return <ToolCard item={item} terminals={terminals} cwd={cwd} />;
    case "permission":
      // Its call's card says that it waits, and so does the end of the list.
      return item.answer === null ? null : <PermissionAnswer item={item} cwd={cwd} />;
    case "elicitation":
      return <ElicitationAnswer item={item} />;
    case "notice":
      return <Notice item={item} />;
    case "marker":
      return <Marker item={item} />;
    case "turn_end":
      return <TurnEnd item={item} />;
    case "unknown":
      return <Unknown item={item} />;
  }
});
