import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";
import type { Chat } from "../model/chat";
import styles from "./App.module.css";
import { useAttention } from "./attention";
import { ConnectionBar } from "./ConnectionBar";
import { matchesMedia } from "../view/media";
import { DrawerButton } from "./Header";
import { ChatContext, useReadOnly } from "./page";
import { useRoute, useView } from "./route";
import { type PaneHandle, SessionPane } from "./SessionPane";
import { Boundary } from "../view";
import { useShortcuts } from "./shortcuts";
import { Sidebar } from "./Sidebar";
import { Toasts } from "./Toasts";

const NewSession = lazy(() => import("./NewSession"));
const Waiting = lazy(() => import("./Waiting"));
const VIEWS = { policy: lazy(() => import("./policy/PolicyPage")), audit: lazy(() => import("./audit/AuditPage")) };
const Shortcuts = lazy(() => import("./Shortcuts"));

export function App({ chat }: { chat: Chat }) {
  return (
    <ChatContext value={chat}>
      <Page chat={chat} />
    </ChatContext>
  );
}

function Page({ chat }: { chat: Chat }) {
  const readOnly = useReadOnly();
  const sessionId = useRoute();
  const view = useView();
  const View = view && VIEWS[view];
  const [drawer, setDrawer] = useState(false);
  const [shortcuts, setShortcuts] = useState(false);
  const searchField = useRef<HTMLInputElement>(null);
  const composer = useRef<PaneHandle>(null);

  useEffect(() => {
    chat.show(sessionId);
    setDrawer(false);
    // On a phone the focus would open the keyboard over what one came to read.
    if (matchesMedia("(pointer: fine)")) composer.current?.focus();
  }, [chat, sessionId]);

  const places = useMemo(
    () => ({
      search: () => {
        flushSync(() => setDrawer(true)); // the next key belongs into the field already
        searchField.current?.focus();
      },
      composer: () => composer.current?.focus(),
      question: () => composer.current?.question(),
      shortcuts: () => setShortcuts(true),
    }),
    [],
  );
  useShortcuts(chat, places);
  useAttention();
  const openDrawer = () => setDrawer(true);

  return (
    <div className={styles.app}>
      {/* biome-ignore lint/a11y/useValidAnchor: a skip link, which screen readers list among the links */}
      <a
        className={styles.skip}
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          composer.current?.focus();
        }}
      >
        Skip to the message field
      </a>
      <ConnectionBar />
      <div className={styles.body}>
        {/* biome-ignore lint/a11y/noStaticElementInteractions: Escape is handled for the controls inside */}
        <div
          className={styles.drawer}
          data-open={drawer || undefined}
          onKeyDown={(event) => {
            if (event.key === "Escape" && drawer) setDrawer(false);
          }}
        >
          <Boundary what="The list of sessions">
            <Sidebar searchField={searchField} showShortcuts={places.shortcuts} />
          </Boundary>
        </div>
        <button
          type="button"
          className={styles.backdrop}
          data-open={drawer || undefined}
          aria-label="Close the session list"
          tabIndex={drawer ? 0 : -1}
          onClick={() => setDrawer(false)}
        />
        <Suspense fallback={<main className={styles.loading} aria-busy="true" />}>
          <Boundary key={sessionId ?? view} what="This page">
            {View ? (
              <View drawer={<DrawerButton open={openDrawer} />} readOnly={readOnly} />
            ) : sessionId === null ? (
              readOnly ? (
                <Waiting drawer={<DrawerButton open={openDrawer} />} />
              ) : (
                <NewSession openDrawer={openDrawer} />
              )
            ) : (
              <SessionPane sessionId={sessionId} openDrawer={openDrawer} handle={composer} />
            )}
          </Boundary>
        </Suspense>
      </div>
      <Toasts />
      {shortcuts ? (
        <Suspense fallback={null}>
          <Shortcuts close={() => setShortcuts(false)} />
        </Suspense>
      ) : null}
    </div>
  );
}
