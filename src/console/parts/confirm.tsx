import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { call, send, type Prepared } from '../api.js';
import { pathTo } from '../api-paths.js';
import { invalidate } from '../load.js';
import { Copy, Dialog, say, ErrorNote, useAction } from './basics.js';
import { Commands } from './commands.js';
import { Field, Form, PasswordField } from './form.js';

const CONFIRM = pathTo('/api/admin/me/confirm');

/** Something that cannot be undone: the name of what it ends has to be typed, for some of it the own password too. */
export interface Question<Data = unknown> {
  title: string;
  text: string;
  /** Absent unless something is deleted permanently. */
  name?: string;
  /** The server asks for it, of sessions of the console. */
  asksPassword?: boolean;
  /** What the button says, where it is not the title. */
  action?: string;
  /** Sent when it is confirmed, and shown as a command; or what is done instead. */
  request: Prepared<Data> | (() => Promise<Data>);
  /** Said when it is done; nothing where what comes next says it. */
  done?: string;
}

/** Asks, sends the request of the question, and loads again what it has changed. */
export function Confirm<Data>({
  title,
  text,
  name,
  asksPassword = false,
  action = title,
  request,
  done,
  children,
  onDone,
  onClose,
}: Question<Data> & {
  /** What else can be chosen. */
  children?: ComponentChildren;
  /** Called when it is done, after the question has closed. */
  onDone?: (data: Data) => void;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState('');
  const [password, setPassword] = useState('');
  const mayGo = (name === undefined || typed === name) && (!asksPassword || password !== '');
  const [busy, run, error] = useAction(async () => {
    if (asksPassword) await call('POST', CONFIRM, { body: { password } });
    const data = await (typeof request === 'function' ? request() : send(request));
    if (done !== undefined) say(done);
    onClose();
    onDone?.(data);
    if (typeof request !== 'function') invalidate(request.path);
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
            value={typed}
            onChange={setTyped}
          />
        )}
        {asksPassword && <PasswordField label="Your password" value={password} onChange={setPassword} />}
        <ErrorNote error={error} />
        <button class="danger" disabled={!mayGo || busy}>
          {action}
        </button>
      </Form>
      {typeof request !== 'function' && <Commands of={[request]} />}
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
    await call('POST', CONFIRM, { body: { password } });
    onDone(true);
  });
  return (
    <Dialog title="Confirm your password" onClose={() => onDone(false)}>
      <Form onSubmit={() => void (password !== '' && run())}>
        <p>This change requires you to confirm your password.</p>
        <PasswordField label="Your password" value={password} onChange={setPassword} />
        <ErrorNote error={error} />
        <button disabled={password === '' || busy}>Continue</button>
      </Form>
    </Dialog>
  );
}
