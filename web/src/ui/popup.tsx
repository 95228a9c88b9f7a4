/**
 * Popups are fetched when the user reaches for one: until then their trigger is a plain button of the same look,
 * which keeps the first load small and a list of a hundred rows cheap.
 */

import { type ComponentProps, type ComponentType, lazy, type ReactNode, Suspense, useState } from "react";

type Trigger = Pick<ComponentProps<"button">, "className" | "aria-label" | "title" | "disabled" | "children">;

/** `load` is fetched on hover or focus and shown, opened, on a click or an arrow key. */
export function onDemand<P extends object>(
  load: () => Promise<{ default: ComponentType<P> }>,
  popup: "menu" | "listbox",
  trigger: (props: P) => Trigger,
): ComponentType<P> {
  const Real = lazy(load);
  const fetchIt = () => void load();
  return function OnDemand(props: P): ReactNode {
    const [wanted, setWanted] = useState(false);
    const plain = (
      <button
        type="button"
        aria-haspopup={popup}
        aria-expanded={false}
        {...trigger(props)}
        onPointerEnter={fetchIt}
        onFocus={fetchIt}
        onClick={() => setWanted(true)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
          event.preventDefault();
          setWanted(true);
        }}
      />
    );
    return wanted ? (
      <Suspense fallback={plain}>
        <Real {...props} />
      </Suspense>
    ) : (
      plain
    );
  };
}
