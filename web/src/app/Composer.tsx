import {
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  lazy,
  type Ref,
  Suspense,
  useCallback,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import type { ContentBlock } from "../bridge/events";
import type { Conversation } from "../model/conversation";
import { IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { Suggestions, useSuggestions } from "../ui/Suggestions";
import { bytes } from "./bytes";
import styles from "./Composer.module.css";
import { replaceWord } from "./completion";
import { type Attachment, type Draft, draftOf, EMPTY, keepDraft } from "./drafts";
import { Options } from "./Options";
import { useChat, usePage, useReadOnly } from "./page";
import { useCompletion } from "./useCompletion";

const Queue = lazy(() => import("./Queue").then((module) => ({ default: module.Queue })));

const DEFAULT_LIMIT = 32 * 1024 * 1024;

export interface ComposerHandle {
  focus(): void;
  add(text: string): void;
}

interface Props {
  conversation: Conversation;
  cwd: string;
  handle: Ref<ComposerHandle>;
}

/** One per session: give it the session's id as key, its draft is that session's. */
export function Composer({ conversation, cwd, handle }: Props) {
  const chat = useChat();
  const { sessionId, working } = conversation;
  const [draft, setDraft] = useState(() => draftOf(sessionId));
  const [cursor, setCursor] = useState(0);
  const [refused, setRefused] = useState("");
  const [dropping, setDropping] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const limit = usePage((state) => state.hello?.limits.maxMessageBytes ?? DEFAULT_LIMIT);
  const offline = usePage((state) => state.status.state !== "open");
  const observer = useReadOnly();
  const completion = useCompletion(sessionId, cwd, draft.text, cursor, conversation.commands);

  const change = useCallback(
    (next: Draft) => {
      keepDraft(sessionId, next);
      setDraft(next);
    },
    [sessionId],
  );

  const write = (text: string, at: number, mentions = draft.mentions) => {
    change({ ...draft, text, mentions });
    setCursor(at);
    queueMicrotask(() => field.current?.setSelectionRange(at, at));
  };

  useImperativeHandle(
    handle,
    () => ({
      focus: () => field.current?.focus(),
      add: (text) => {
        const now = draftOf(sessionId);
        change({ ...now, text: now.text === "" ? text : `${now.text}\n${text}` });
        field.current?.focus();
      },
    }),
    [sessionId, change],
  );

  useLayoutEffect(() => fit(field.current), [draft.text]);

  const choose = (index: number, tab = false) => {
    const { wanted, suggestions } = completion;
    const chosen = suggestions[index];
    if (wanted === null || chosen === undefined) return;
    if (wanted.kind === "command") {
      const next = replaceWord(draft.text, wanted, `${chosen.name} `);
      write(next.text, next.cursor);
    } else if (chosen.directory) {
      const next = replaceWord(draft.text, wanted, `@${chosen.path?.replace(/\/$/, "")}/`);
      write(next.text, next.cursor);
    } else {
      const path = chosen.path ?? chosen.name;
      const next = replaceWord(draft.text, wanted, `@${path}${tab ? "" : " "}`);
      write(next.text, next.cursor, { ...draft.mentions, [`@${path}`]: path });
    }
  };
  const control = useSuggestions(completion.suggestions, choose, completion.close);

  const send = () => {
    const content = contentOf(draft, cwd);
    if (content === null || observer) return;
    const size = new Blob([JSON.stringify(content)]).size;
    if (size > limit) {
      setRefused(`This message has ${bytes(size)}; the gateway takes at most ${bytes(limit)}.`);
      return;
    }
    chat.sendMessage(sessionId, content);
    change(EMPTY);
    setRefused("");
  };

  const addFiles = async (files: readonly File[]) => {
    const reading = await import("./attachments").catch(() => null); // no part of the first load
    if (reading === null) {
      setRefused("Nothing was attached: reload the page and try again.");
      return;
    }
    const outcome = await reading.attach(files, draft.attachments, conversation.capabilities, limit);
    const now = draftOf(sessionId);
    change({ ...now, attachments: [...now.attachments, ...outcome.added] });
    setRefused(outcome.refused.map(({ name, reason }) => `${name} was not attached: ${reason}.`).join(" "));
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const enter = event.key === "Enter" && !event.shiftKey && !event.altKey;
    // A command that is written in full and takes nothing is sent; there is nothing to complete.
    const whole = conversation.commands.some((command) => `/${command.name}` === draft.text && command.input == null);
    if (!(enter && whole) && control.key(event)) return;
    if (event.nativeEvent.isComposing) return;
    if (enter) {
      event.preventDefault();
      send();
    }
  };

  const onPaste = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files];
    if (files.length === 0) return;
    event.preventDefault();
    void addFiles(files);
  };

  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setDropping(false);
    void addFiles([...event.dataTransfer.files]);
  };

  const empty = contentOf(draft, cwd) === null;
  const listId = "composer-suggestions";
  const listed = completion.suggestions.length > 0;
  const takesFiles =
    conversation.capabilities.image || conversation.capabilities.audio || conversation.capabilities.embeddedContext;
  return (
    <div className={styles.wrap}>
      {refused === "" ? null : (
        <div className={styles.note} role="alert">
          <span>{refused}</span>
          <IconButton icon="close" label="Dismiss" onClick={() => setRefused("")} />
        </div>
      )}
      {conversation.queue.length === 0 ? null : (
        <Suspense>
          <Queue sessionId={sessionId} queue={conversation.queue} working={working} observer={observer} />
        </Suspense>
      )}
      <form
        className={styles.box}
        data-dropping={dropping || undefined}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
        onDragOver={(event) => {
          event.preventDefault();
          setDropping(true);
        }}
        onDragLeave={() => setDropping(false)}
        onDrop={onDrop}
      >
        <Suggestions
          id={listId}
          side="above"
          control={control}
          suggestions={completion.suggestions}
          choose={choose}
          label={completion.wanted?.kind === "command" ? "Commands" : "Files"}
        />
        <Chips
          attachments={draft.attachments}
          remove={(id) => change({ ...draft, attachments: draft.attachments.filter((one) => one.id !== id) })}
        />
        <textarea
          ref={field}
          className={styles.text}
          rows={1}
          value={draft.text}
          disabled={observer}
          placeholder={
            observer
              ? "You may read this session, but not write"
              : working
                ? "Queue a message…"
                : "Message, / for commands, @ for files"
          }
          aria-label="Message"
          aria-autocomplete="list"
          aria-controls={listed ? listId : undefined}
          aria-activedescendant={listed ? `${listId}-${control.active}` : undefined}
          onChange={(event) => {
            change({ ...draft, text: event.target.value });
            setCursor(event.target.selectionStart);
          }}
          onSelect={(event) => setCursor(event.currentTarget.selectionStart)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        {observer ? null : (
          <div className={styles.row}>
            {takesFiles ? (
              <IconButton icon="attach" label="Attach files" onClick={() => picker.current?.click()} />
            ) : null}
            <input
              ref={picker}
              type="file"
              multiple
              hidden
              tabIndex={-1}
              aria-label="Files to attach"
              onChange={(event) => {
                void addFiles([...(event.target.files ?? [])]);
                event.target.value = "";
              }}
            />
            <Options conversation={conversation} disabled={offline} />
            {working ? <span className={styles.hint}>Esc stops</span> : null}
            {working ? (
              <IconButton
                icon="stop"
                look="outline"
                label="Stop (Esc)"
                className={styles.send ?? ""}
                onClick={() => chat.cancel(sessionId)}
              />
            ) : null}
            {!working || !empty ? (
              <IconButton
                icon="send"
                look="primary"
                type="submit"
                className={styles.send ?? ""}
                disabled={empty}
                label={working ? "Queue (Enter)" : offline ? "Send when connected (Enter)" : "Send (Enter)"}
              />
            ) : null}
          </div>
        )}
      </form>
    </div>
  );
}

function Chips({ attachments, remove }: { attachments: readonly Attachment[]; remove(id: string): void }) {
  if (attachments.length === 0) return null;
  return (
    <ul className={styles.chips} aria-label="Attached">
      {attachments.map(({ id, name, size, preview }) => (
        <li key={id} className={styles.chip}>
          {preview === null ? <Icon name="file" /> : <img src={preview} alt="" />}
          <span title={name}>{name}</span>
          <small>{bytes(size)}</small>
          <IconButton icon="close" label={`Remove ${name}`} onClick={() => remove(id)} />
        </li>
      ))}
    </ul>
  );
}

/** As tall as what is in it; the style sheet says how tall at most. */
function fit(field: HTMLTextAreaElement | null): void {
  if (field === null) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

function contentOf(draft: Draft, cwd: string): string | ContentBlock[] | null {
  const text = draft.text.trim();
  const mentioned = Object.entries(draft.mentions).filter(([word]) => text.includes(word));
  if (text === "" && draft.attachments.length === 0) return null;
  if (draft.attachments.length === 0 && mentioned.length === 0) return text;
  const links = mentioned.map(
    ([, path]): ContentBlock => ({ type: "resource_link", uri: fileUri(path, cwd), name: path }),
  );
  return [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...links,
    ...draft.attachments.map(({ block }) => block),
  ];
}

function fileUri(path: string, cwd: string): string {
  const absolute = path.startsWith("/") ? path : `${cwd.replace(/\/$/, "")}/${path}`;
  return `file://${absolute.split("/").map(encodeURIComponent).join("/")}`;
}
