/** Dialogs: a native one, so that the focus stays inside and Esc closes it. */
import { signal } from '@preact/signals';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { problemText } from '../api/client';
import { refreshAll } from '../api/resource';
import { ProblemNote, say } from './feedback';
import { Icon } from './icons';

const open = signal<VNode | null>(null);

export function showDialog(content: VNode): void {
  open.value = content;
}

export function closeDialog(): void {
  open.value = null;
}

/** The place of the dialog in the page; there is at most one. */
export function DialogPlace() {
  return open.value;
}

export function Dialog(props: { title: string; wide?: boolean; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    element.current?.showModal();
    return () => element.current?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={props.wide ? 'dialog wide' : 'dialog'}
      aria-labelledby="dialog-title"
      onClose={closeDialog}
      onClick={(event) => event.target === element.current && closeDialog()}
    >
      <div class="dialog-body">
        <header>
          <h2 id="dialog-title">{props.title}</h2>
          <button class="icon-button" type="button" aria-label="Close" onClick={closeDialog}>
            <Icon name="close" />
          </button>
        </header>
        {props.children}
      </div>
    </dialog>
  );
}

interface ChangeProps<Answer> {
  title: string;
  wide?: boolean;
  /** The fields. */
  children: ComponentChildren;
  /** Asks the server; `dryRun` leaves the cluster as it is. */
  send: (dryRun: boolean) => Promise<Answer>;
  /** Shows what a dry run answered. Without it, there is no dry run. */
  preview?: (answer: Answer) => ComponentChildren;
  /** What will happen depends on these; another value makes the preview old. */
  inputs: unknown[];
  submit: string;
  danger?: boolean;
  off?: boolean;
  done: (answer: Answer) => string;
  then?: (answer: Answer) => void;
}

/** A dialog for a change: fields, what would happen, then the change itself. */
export function ChangeDialog<Answer>(props: ChangeProps<Answer>) {
  const [preview, setPreview] = useState<Answer | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    setPreview(null);
    setProblem(null);
  }, props.inputs);
  const needsPreview = props.preview !== undefined && preview === null;

  const act = async (event: Event) => {
    event.preventDefault();
    if (busy || props.off) return;
    setBusy(true);
    setProblem(null);
    try {
      const answer = await props.send(needsPreview);
      if (needsPreview) setPreview(answer);
      else {
        closeDialog();
        say(props.done(answer));
        refreshAll();
        props.then?.(answer);
      }
    } catch (error) {
      setProblem(problemText(error));
    } finally {
      setBusy(false);
    }
  };

  const tone = needsPreview ? '' : props.danger ? 'danger-solid' : 'primary';
  return (
    <Dialog title={props.title} wide={props.wide ?? false}>
      <form onSubmit={act}>
        {props.children}
        {preview !== null && <div class="preview">{props.preview?.(preview)}</div>}
        {problem && <ProblemNote text={problem} />}
        <footer>
          <button class="button" type="button" onClick={closeDialog}>
            Cancel
          </button>
          <button class={`button ${tone}`} type="submit" disabled={busy || props.off}>
            {needsPreview ? 'Preview' : props.submit}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
