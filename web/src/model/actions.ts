/** What the view may ask for. The app provides it; components take it from `useActions()`. */

import { createContext, useContext } from "react";
import type { ContentBlock, JsonObject, Wish } from "../bridge/events";

export interface Actions {
  answerPermission(requestId: string, optionId: string | null, remember?: Wish): void; // null: cancelled
  answerElicitation(requestId: string, action: "accept" | "decline" | "cancel", content?: JsonObject): void;
  /** Sends a message that failed or was lost again. */
  retryMessage(clientMessageId: string): void;
  dropMessage(clientMessageId: string): void;
  /** Puts text into the composer, after what is there. */
  compose(text: string): void;
  cancelTurn(): void;
  loadOlder(): void;
  editQueued(clientMessageId: string, content: string | ContentBlock[]): void;
  dropQueued(clientMessageId: string): void;
}

export const ActionsContext = createContext<Actions | null>(null);

export function useActions(): Actions {
  const actions = useContext(ActionsContext);
  if (actions === null) throw new Error("There is no ActionsContext around this component.");
  return actions;
}
