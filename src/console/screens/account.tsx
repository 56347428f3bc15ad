import { call, prepare } from '../api.js';
import { pathTo } from '../api-paths.js';
import { moment } from '../format.js';
import { invalidate, useLoad } from '../load.js';
import { attempt, say, ErrorNote, useAction } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Form, PasswordField, useForm } from '../parts/form.js';
import { PageHead } from '../parts/page-head.js';
import { List } from '../parts/table.js';
import { me } from '../session.js';

const SESSIONS = pathTo('/api/admin/me/sessions');
const PASSWORD = pathTo('/api/admin/me/password');

export function Account() {
  const form = useForm({ currentPassword: '', newPassword: '' });
  const [busy, change, refused] = useAction(async () => {
    await call('POST', PASSWORD, { body: form.values });
    form.reset();
    say('The password is changed; your other sessions have ended');
    invalidate(PASSWORD);
  });
  const endOthers = (): Promise<void> =>
    attempt(async () => {
      const { ended } = await call('DELETE', SESSIONS);
      invalidate(SESSIONS);
      return `${ended} sessions have ended`;
    });
  return (
    <>
      <PageHead title="Account" />
      <p>
        {me.value?.email}, {me.value?.role}
      </p>
      <h2>Sessions</h2>
      <List
        label="Sessions"
        of={useLoad(SESSIONS)}
        keyOf={(session) => session.createdAt + session.expiresAt}
        empty="No sessions."
        columns={[
          { name: 'Signed in', show: ({ createdAt }) => moment(createdAt) },
          { name: 'Until', show: ({ expiresAt }) => moment(expiresAt) },
          { name: 'Last used', show: ({ usedAt }) => moment(usedAt) },
          {
            name: 'By',
            show: (session) => `${session.console ? 'console' : 'token'}${session.current ? ' (this one)' : ''}`,
          },
        ]}
      />
      <p class="row">
        <button onClick={() => void endOthers()}>End all other sessions</button>
      </p>
      <Commands
        of={[prepare('GET', SESSIONS), prepare('DELETE', SESSIONS), prepare('POST', PASSWORD, { body: form.values })]}
      />
      <h2>Password</h2>
      <Form class="stack" onSubmit={() => void change()}>
        <PasswordField label="Current password" {...form.at('currentPassword')} />
        <PasswordField label="New password" isNew {...form.at('newPassword')} />
        <ErrorNote error={refused} />
        <button disabled={busy}>Change the password</button>
      </Form>
    </>
  );
}
