import type { ComponentChildren } from 'preact';
import type { Refusal } from '../api.js';
import { Trouble } from './basics.js';
import { Commands, type CommandLine } from './commands.js';
import { Drawer } from './drawer.js';
import { Form } from './form.js';

/** A drawer with one form: its action and the way out stay in sight, and the same as a command stands under it. */
export function DrawerForm({
  title,
  action,
  isDirty,
  mayGo = isDirty,
  busy,
  error,
  commands,
  onSubmit,
  onClose,
  children,
  more,
}: {
  title: string;
  /** What the button says. */
  action: string;
  /** Whether something would be lost by leaving. */
  isDirty: boolean;
  /** Whether there is something to send: by default, whatever would be lost. */
  mayGo?: boolean;
  busy: boolean;
  error: Refusal | null;
  commands?: CommandLine | undefined;
  onSubmit: () => void;
  onClose: () => void;
  children: ComponentChildren;
  /** Further buttons of the foot. */
  more?: ComponentChildren;
}) {
  return (
    <Drawer title={title} isDirty={isDirty} onClose={onClose}>
      <Form
        onSubmit={() => {
          if (mayGo) onSubmit();
        }}
      >
        {children}
        {commands && <Commands {...commands} />}
        <Trouble error={error} />
        <p class="foot">
          <button class="primary" disabled={busy || !mayGo}>
            {action}
          </button>
          {more}
        </p>
      </Form>
    </Drawer>
  );
}
