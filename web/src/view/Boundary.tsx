import { Component, type ErrorInfo, type ReactNode } from "react";
import styles from "./Boundary.module.css";
import { copyText } from "./copy";

interface Props {
  /** What is inside, in the words of the message: "This item", "The page". */
  what: string;
  /** What is drawn inside; when it changes, drawing is tried again. */
  of?: unknown;
  children: ReactNode;
}

interface State {
  error: Error | null;
  stack: string;
  copied: boolean;
}

/**
 * Keeps an error while drawing one part from emptying the page: in its place stands what happened, with the ways on.
 *
 * React unmounts everything up to the nearest boundary when a component or an effect throws.
 */
export class Boundary extends Component<Props, State> {
  override state: State = { error: null, stack: "", copied: false };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidCatch(_: unknown, info: ErrorInfo): void {
    this.setState({ stack: info.componentStack ?? "" });
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.error !== null && before.of !== this.props.of)
      this.setState({ error: null, stack: "", copied: false });
  }

  override render(): ReactNode {
    const { error, copied } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className={styles.trouble} role="alert">
        <p>
          {this.props.what} could not be shown: {error.message || error.name}
        </p>
        <button type="button" onClick={() => window.location.reload()}>
          Reload
        </button>
        <button type="button" onClick={this.copy}>
          {copied ? "Copied" : "Copy report"}
        </button>
      </div>
    );
  }

  private readonly copy = async (): Promise<void> => {
    const { error, stack } = this.state;
    const report = [this.props.what, error?.stack ?? String(error), stack.trim(), navigator.userAgent].join("\n\n");
    this.setState({ copied: await copyText(report) });
  };
}
