/** The one chat of this page, for components. */

import { createContext, useContext } from "react";
import { useStore } from "zustand";
import type { Chat } from "../model/chat";
import type { PageState } from "../model/store";

export const ChatContext = createContext<Chat | null>(null);

export function useChat(): Chat {
  const chat = useContext(ChatContext);
  if (chat === null) throw new Error("There is no ChatContext around this component.");
  return chat;
}

export function usePage<T>(select: (state: PageState) => T): T {
  return useStore(useChat().store, select);
}

/** Whether this page may only read and, with the role `approve`, answer questions. */
export function useReadOnly(): boolean {
  return usePage(({ hello }) => hello?.role === "observe" || hello?.role === "approve");
}
