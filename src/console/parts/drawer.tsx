import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { send, type Prepared } from '../api.js';
import { invalidate } from '../load.js';
import { Dialog, say, ErrorNote, useAction, useModal } from './basics.js';
import { Commands } from './commands.js';
import { Form } from './form.js';
import { Icon } from './icon.js';

/**
 * A sheet at the right, for one record or form; dialogs are for questions alone. With `isDirty` it asks before Esc or
 * its button closes it. A `.foot` inside stays visible at the bottom.
 */
export function Drawer({
  title,
  onClose,
  children,
  wide = false,
  isDirty = false,
  onKeep,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
  isDirty?: boolean;
  /** Leaves with what is typed kept as a draft. */
  onKeep?: () => void;
}) {
  const ref = useModal();
  const id = useId();
  const [isAsking, setAsking] = useState(false);
  // At once: the event of a dialog that closes comes later, and would come back to here from where one has gone.
  const leave = (): void => (isDirty ? setAsking(true) : onClose());
  return (
    <dialog
      ref={ref}
      class={wide ? 'drawer wide' : 'drawer'}
      aria-labelledby={id}
      // A file field's picker and dialogs within send events of the same names, which rise to here.
      onCancel={(event) => {
        if (event.target !== ref.current || !isDirty) return;
        event.preventDefault();
        setAsking(true);
      }}
      onClose={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button class="quiet icon" aria-label="Close" onClick={leave}>
          <Icon name="close" />
        </button>
      </header>
      <div class="body">{children}</div>
      {isAsking && (
        <Dialog title="Leave without saving?" onClose={() => setAsking(false)}>
          <p>You have unsaved changes.</p>
          <p class="row">
            <button class="primary" onClick={() => setAsking(false)}>
              Keep editing
            </button>
            {onKeep && <button onClick={onKeep}>Keep as a draft</button>}
            <button class="danger" onClick={onClose}>
              Discard
            </button>
          </p>
        </Dialog>
      )}
    </dialog>
  );
}

/**
 * A drawer with one form, whose action stays visible. It sends its requests one after the other, shows them as
 * commands, and loads again what they have changed.
 */
export function DrawerForm<Data>({
  title,
  action = 'Save',
  requests,
  done,
  isDirty,
  mayGo = isDirty,
  onDone,
  onClose,
  children,
}: {
  title: string;
  /** What the button says. */
  action?: string;
  requests: readonly Prepared<Data>[];
  /** Said when all are done. */
  done: string;
  /** Whether something would be lost by leaving. */
  isDirty: boolean;
  /** Whether there is something to send: by default, whatever would be lost. */
  mayGo?: boolean;
  /** Called with the last answer, instead of closing. */
  onDone?: (data: Data) => void;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const [busy, save, error] = useAction(async () => {
    let last: Data | undefined;
    for (const request of requests) last = await send(request);
    say(done);
    if (onDone) onDone(last as Data);
    else onClose();
    for (const { path } of requests) invalidate(path);
  });
  return (
    <Drawer title={title} isDirty={isDirty} onClose={onClose}>
      <Form onSubmit={() => void (mayGo && save())}>
        {children}
        {requests.length > 0 && <Commands of={requests} />}
        <ErrorNote error={error} />
        <p class="foot">
          <button class="primary" disabled={busy || !mayGo}>
            {action}
          </button>
        </p>
      </Form>
    </Drawer>
  );
}
