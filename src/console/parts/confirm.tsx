import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api.js';
import { pathTo } from '../api-paths.js';
import { Copy, Dialog, Trouble, useAction } from './basics.js';
import { Commands, type CommandLine } from './commands.js';
import { Field, Form, PasswordField } from './form.js';

const PROOF = pathTo('/api/admin/me/confirm');

/** Something that cannot be undone: the name of what it ends has to be typed, for some of it the own password too. */
export function Confirm({
  title,
  text,
  name,
  asksPassword = false,
  action,
  commands,
  children,
  onConfirm,
  onClose,
}: {
  title: string;
  text: string;
  /** Left out where nothing ends for good. */
  name?: string;
  /** The server asks for it, of sessions of the console. */
  asksPassword?: boolean;
  action: string;
  /** Shown here where no list of the screen has it. */
  commands?: CommandLine;
  /** What else can be chosen. */
  children?: ComponentChildren;
  onConfirm: () => Promise<void>;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState('');
  const [password, setPassword] = useState('');
  const mayGo = (name === undefined || typed === name) && (!asksPassword || password !== '');
  const [busy, run, error] = useAction(async () => {
    if (asksPassword) await call('POST', PROOF, { body: { password } });
    await onConfirm();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <Form onSubmit={() => void (mayGo && run())}>
        <p>{text}</p>
        {children}
        {name !== undefined && (
          <Field
            label={
              <span>
                Type <b>{name}</b> to go on
              </span>
            }
            autocomplete="off"
            value={typed}
            onText={setTyped}
          />
        )}
        {asksPassword && <PasswordField label="Your password" value={password} onText={setPassword} />}
        <Trouble error={error} />
        <button class="danger" disabled={!mayGo || busy}>
          {action}
        </button>
      </Form>
      {commands && <Commands {...commands} />}
    </Dialog>
  );
}

/** A secret that the server shows once. */
export function Secret({ what, value, onClose }: { what: 'Key' | 'Secret'; value: string; onClose: () => void }) {
  return (
    <Dialog title={`The new ${what.toLowerCase()}`} onClose={onClose}>
      <p>It is shown only now.</p>
      <p>
        <code>{value}</code> <Copy text={value} what={what} />
      </p>
    </Dialog>
  );
}

/** Asks for the own password over the page as it is, and has the request that wants it sent again. */
export function PasswordAgain({ onDone }: { onDone: (isGiven: boolean) => void }) {
  const [password, setPassword] = useState('');
  const [busy, run, error] = useAction(async () => {
    await call('POST', PROOF, { body: { password } });
    onDone(true);
  });
  return (
    <Dialog title="Your password once more" onClose={() => onDone(false)}>
      <Form onSubmit={() => void (password !== '' && run())}>
        <p>What you are about to do outlives this session.</p>
        <PasswordField label="Your password" value={password} onText={setPassword} />
        <Trouble error={error} />
        <button disabled={password === '' || busy}>Go on</button>
      </Form>
    </Dialog>
  );
}
