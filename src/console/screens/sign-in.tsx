import { useLayoutEffect } from 'preact/hooks';
import { call } from '../api.js';
import { pathTo } from '../api-paths.js';
import { ErrorNote, useAction } from '../parts/basics.js';
import { Field, Form, PasswordField, useForm } from '../parts/form.js';
import { replaceWith } from '../routes.js';

/** The link of `bsvc console`, if the page was opened there; it leaves the address at once. */
export function takeLink(): string | null {
  const link = /^#\/enter\/(bsvc_link_[\w-]+)$/.exec(location.hash)?.[1];
  if (link === undefined) return null;
  replaceWith('#/');
  return link;
}

export async function signInByLink(link: string): Promise<void> {
  await call('POST', pathTo('/api/admin/login/link'), { body: { link }, isSignIn: true });
}

export function SignIn({ onDone, isAgain = false }: { onDone: () => void; isAgain?: boolean }) {
  const form = useForm({ email: '', password: '' });
  // Its dialog gives the focus by itself.
  useLayoutEffect(() => {
    if (!isAgain) document.querySelector<HTMLElement>('main.alone input')?.focus();
  }, [isAgain]);
  const [busy, run, error] = useAction(async () => {
    await call('POST', pathTo('/api/admin/login'), { body: { ...form.values, cookie: true }, isSignIn: true });
    form.at('password').onChange('');
    onDone();
  });
  return (
    <Form class="stack" onSubmit={() => void run()}>
      {!isAgain && <h1>bsvc console</h1>}
      <Field label="Email" type="email" required autocomplete="username" {...form.at('email')} />
      <PasswordField label="Password" {...form.at('password')} />
      <ErrorNote error={error} />
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
