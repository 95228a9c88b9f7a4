import { Dialog } from "../../ui/Dialog";
import { usePage } from "../page";
import { RememberedAnswers } from "./RememberedAnswers";

export default function RememberedDialog({ close }: { close(): void }) {
  const role = usePage((state) => state.hello?.role ?? "observe");
  return (
    <Dialog title="Remembered answers" onClose={close}>
      <RememberedAnswers mayForget={role === "control" || role === "admin"} />
    </Dialog>
  );
}
