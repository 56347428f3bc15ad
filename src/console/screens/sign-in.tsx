import { useState } from 'preact/hooks';
import { api } from '../api.js';
import { Trouble, useAction } from '../parts/basics.js';
import { Field, Form } from '../parts/form.js';
import { replaceWith } from '../routes.js';

/** Signs in by the link of `bsvc console`, if the page was opened there; the link leaves the address at once. */
export async function useLink(): Promise<void> {
  const link = /^#\/enter\/(bsvc_link_[\w-]+)$/.exec(location.hash)?.[1];
  if (link === undefined) return;
  replaceWith('#/');
  await api('POST', '/api/admin/login/link', { link }, { isSignIn: true });
}

export function SignIn({ onDone, isAgain = false }: { onDone: () => void; isAgain?: boolean }) {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [busy, run, error] = useAction(async () => {
    await api('POST', '/api/admin/login', { email, password, cookie: true }, { isSignIn: true });
    setPassword('');
    onDone();
  });
  return (
    <Form class="sign-in" onSubmit={() => void run()}>
      {!isAgain && <h1>bsvc console</h1>}
      <Field label="E-mail" type="email" required autocomplete="username" value={email} onText={setEmail} />
      <Field
        label="Password"
        type="password"
        required
        autocomplete="current-password"
        value={password}
        onText={setPassword}
      />
      <Trouble error={error} />
      <button class="primary" disabled={busy}>
        Sign in
      </button>
      {!isAgain && (
        <p class="muted">
          Operators are added on the command line: <code>bsvc operator add --email you@example.com</code>. A link that
          signs in once is made by <code>bsvc console</code>.
        </p>
      )}
    </Form>
  );
}
