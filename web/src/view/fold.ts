/** What a reader opened or closed stays so when it is scrolled out of the window and in again. */

import { createContext, useCallback, useContext, useState } from "react";

export const FoldContext = createContext<Map<string, boolean>>(new Map());

/** Open or closed, by a name that is unique in the conversation; `byDefault` holds until the reader decides. */
export function useFold(name: string, byDefault: boolean): [boolean, (open: boolean) => void] {
  const folds = useContext(FoldContext);
  const [, redraw] = useState(0);
  const set = useCallback(
    (open: boolean) => {
      folds.set(name, open);
      redraw((count) => count + 1);
    },
    [folds, name],
  );
  return [folds.get(name) ?? byDefault, set];
}
