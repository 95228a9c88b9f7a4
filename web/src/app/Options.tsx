import type { ConfigChoice, ConfigGroup, ConfigOption } from "../bridge/events";
import type { Conversation } from "../model/conversation";
import { type Choice, Select } from "../ui/Select";
import styles from "./Composer.module.css";
import { useChat } from "./page";

/** The mode, the model, and whatever else the agent lets one choose. */
export function Options({ conversation, disabled }: { conversation: Conversation; disabled: boolean }) {
  const chat = useChat();
  const { sessionId, modes, modeId, configOptions } = conversation;
  // An agent that offers its modes as an option too has them once.
  const modeShown = modes.length > 0 && !configOptions.some((option) => option.category === "mode");
  return (
    <div className={styles.options}>
      {modeShown ? (
        <Select
          label="Mode"
          value={modeId ?? ""}
          disabled={disabled}
          onChange={(value) => chat.setMode(sessionId, value)}
          choices={modes.map(({ id, name, description }) => ({ value: id, name, hint: description ?? null }))}
        />
      ) : null}
      {configOptions.map((option) => (
        <Select
          key={option.id}
          label={option.name}
          value={String(option.currentValue)}
          disabled={disabled}
          choices={lacksModel(conversation) && isModel(option) ? [...choicesOf(option), HOW] : choicesOf(option)}
          onChange={(value) => {
            if (value === HOW.value) chat.sendMessage(sessionId, "/model");
            else chat.setOption(sessionId, option.id, option.type === "boolean" ? value === "true" : value);
          }}
        />
      ))}
    </div>
  );
}

/** A menu of nothing but "no model" is no place to end. */
const HOW: Choice = { value: "/model", name: "How to get a model…", hint: "Sends /model" };

function isModel(option: ConfigOption): boolean {
  return option.category === "model";
}

/** The agent could have a language model, has none, and can tell how to get one. */
export function lacksModel({ configOptions, commands }: Conversation): boolean {
  return (
    configOptions.some((option) => isModel(option) && option.currentValue === "none") &&
    commands.some(({ name }) => name === "model")
  );
}

function choicesOf(option: ConfigOption): Choice[] {
  if (option.type === "boolean") {
    return [
      { value: "true", name: `${option.name}: on`, hint: option.description ?? null },
      { value: "false", name: `${option.name}: off` },
    ];
  }
  return (option.options ?? []).flatMap((entry) =>
    isGroup(entry) ? entry.options.map((choice) => choiceOf(choice, entry.name)) : [choiceOf(entry)],
  );
}

function choiceOf({ value, name, description }: ConfigChoice, group?: string): Choice {
  return { value, name, hint: description ?? null, ...(group === undefined ? {} : { group }) };
}

function isGroup(entry: ConfigChoice | ConfigGroup): entry is ConfigGroup {
  return "options" in entry;
}
