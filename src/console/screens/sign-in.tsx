import { useState } from 'preact/hooks';
import { api } from '../api.js';
import { Trouble, useAction } from '../parts/basics.js';
import { replaceWith } from '../routes.js';

/** Signs in by the link of `bsvc console`, if that is where the page was opened; the link leaves the address at once. */
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
    <form
      class="sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      {!isAgain && <h1>bsvc console</h1>}
      <label>
        E-mail
        <input
          type="email"
          required
          autocomplete="username"
          value={email}
          onInput={(event) => setEmail(event.currentTarget.value)}
        />
      </label>
      <label>
        Password
        <input
          type="password"
          required
          autocomplete="current-password"
          value={password}
          onInput={(event) => setPassword(event.currentTarget.value)}
        />
      </label>
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
    </form>
  );
}
