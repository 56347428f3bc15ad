import { useState } from 'preact/hooks';
import { api } from '../../api.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { attempt, say, Trouble, useAction } from '../../parts/basics.js';
import { Commands } from '../../parts/commands.js';
import { Form, PasswordField } from '../../parts/form.js';
import { PageHead } from '../../parts/page-head.js';
import { List } from '../../parts/table.js';
import { me } from '../../session.js';

interface Session {
  createdAt: string;
  expiresAt: string;
  usedAt: string | null;
  console: boolean;
  current: boolean;
}

export function Account() {
  const list = useLoad<{ items: Session[] }>('/api/admin/me/sessions');
  const { reload } = list;
  const [currentPassword, setCurrent] = useState('');
  const [newPassword, setNew] = useState('');
  const [busy, change, refused] = useAction(async () => {
    await api('POST', '/api/admin/me/password', { currentPassword, newPassword });
    setCurrent('');
    setNew('');
    say('The password is changed; your other sessions have ended');
    reload();
  });
  const endOthers = (): Promise<void> =>
    attempt(async () => {
      const { ended } = await api<{ ended: number }>('DELETE', '/api/admin/me/sessions');
      reload();
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
        of={list}
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
        name="Sessions"
        path="/api/admin/me/sessions"
        more={[
          { name: 'End all other sessions', method: 'DELETE', path: '/api/admin/me/sessions' },
          {
            name: 'Change the password',
            method: 'POST',
            path: '/api/admin/me/password',
            body: { currentPassword: '…', newPassword: '…' },
          },
        ]}
      />
      <h2>Password</h2>
      <Form class="sign-in" onSubmit={() => void change()}>
        <PasswordField label="Current password" value={currentPassword} onText={setCurrent} />
        <PasswordField label="New password" isNew value={newPassword} onText={setNew} />
        <Trouble error={refused} />
        <button disabled={busy}>Change the password</button>
      </Form>
    </>
  );
}
