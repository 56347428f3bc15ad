import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Dialog } from './basics.js';
import { Icon } from './icon.js';
import { useModal } from './modal.js';

/**
 * A sheet at the right, for one record or form; dialogs are for questions alone. With `isDirty` it asks before Esc or
 * its button closes it. A `.foot` inside stays in sight at the bottom.
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
          <p>What you have typed here is not saved.</p>
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
